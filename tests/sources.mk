# Written by m4/list-sources: do not edit.
check_programs = \
	tests/api/check_api \
	tests/api/check_backend \
	tests/api/check_carry \
	tests/api/check_changed_files \
	tests/api/check_code_cache \
	tests/api/check_contents \
	tests/api/check_device \
	tests/api/check_events \
	tests/api/check_gpu \
	tests/api/check_hostile_api \
	tests/api/check_memory \
	tests/api/check_over_input \
	tests/api/check_patterns \
	tests/api/check_strings \
	tests/api/check_threads \
	tests/api/check_values \
	tests/onnxifi/check_compatibility \
	tests/onnxifi/check_foxi \
	tests/onnxifi/check_ids \
	tests/onnxifi/check_onnxifi \
	tests/onnxifi/check_threads \
	tests/ptx/check_ptx \
	tests/target/check_attention \
	tests/target/check_candidates \
	tests/target/check_carry \
	tests/target/check_checked_runs \
	tests/target/check_dynamic_m \
	tests/target/check_exact \
	tests/target/check_machines \
	tests/target/check_operations \
	tests/target/check_own_kernels \
	tests/target/check_product_programs \
	tests/target/check_product_stacks \
	tests/target/check_quantised \
	tests/target/check_random \
	tests/target/check_sizes \
	tests/target/check_target \
	tests/target/check_verify \
	tests/unit/autotune/check_autotune \
	tests/unit/autotune/check_log \
	tests/unit/backend_cpu/check_contraction \
	tests/unit/backend_cpu/check_exec_target \
	tests/unit/backend_cpu/check_library \
	tests/unit/backend_gpu/check_attention \
	tests/unit/backend_gpu/check_contraction \
	tests/unit/backend_gpu/check_cuda \
	tests/unit/backend_gpu/check_cuda_failures \
	tests/unit/backend_gpu/check_cuda_module \
	tests/unit/backend_gpu/check_cuda_staging \
	tests/unit/backend_gpu/check_emulated_block \
	tests/unit/backend_gpu/check_emulator \
	tests/unit/backend_gpu/check_fake_cuda \
	tests/unit/backend_gpu/check_kernel \
	tests/unit/backend_gpu/check_race_check \
	tests/unit/backend_ref/check_computations \
	tests/unit/backend_ref/check_ref \
	tests/unit/backend_ref/check_ref_target \
	tests/unit/base/check_base \
	tests/unit/base/check_bounds \
	tests/unit/base/check_choice \
	tests/unit/base/check_dim \
	tests/unit/base/check_dtype \
	tests/unit/base/check_guard \
	tests/unit/base/check_hash \
	tests/unit/base/check_literal_list \
	tests/unit/base/check_machine \
	tests/unit/base/check_memory_span \
	tests/unit/base/check_npy \
	tests/unit/base/check_placement \
	tests/unit/base/check_protobuf_wire \
	tests/unit/base/check_string_table \
	tests/unit/emit/blocks/check_block \
	tests/unit/emit/blocks/check_block_attention \
	tests/unit/emit/blocks/check_block_copies \
	tests/unit/emit/blocks/check_block_nms \
	tests/unit/emit/blocks/check_block_scatter \
	tests/unit/emit/blocks/check_block_sort \
	tests/unit/emit/blocks/check_block_transpose \
	tests/unit/emit/blocks/check_blocks \
	tests/unit/emit/blocks/check_last_block \
	tests/unit/emit/blocks/check_mma_product \
	tests/unit/emit/blocks/check_scan \
	tests/unit/emit/blocks/check_team \
	tests/unit/emit/blocks/check_tiled_product \
	tests/unit/emit/check_depthwise \
	tests/unit/emit/check_depthwise_sizes \
	tests/unit/emit/check_emit \
	tests/unit/emit/check_emit_machines \
	tests/unit/emit/check_emit_movement \
	tests/unit/emit/check_emit_sizes \
	tests/unit/emit/check_emit_sizes_loops \
	tests/unit/emit/check_emit_sizes_rows \
	tests/unit/emit/check_emit_sums \
	tests/unit/emit/check_flash_attention \
	tests/unit/emit/check_gemm \
	tests/unit/emit/check_position \
	tests/unit/emit/check_product \
	tests/unit/emit/check_product_sizes \
	tests/unit/emit/check_split_similar \
	tests/unit/emit/check_winograd \
	tests/unit/emit/check_winograd_sizes \
	tests/unit/emit/math/check_math \
	tests/unit/emit/math/check_math_f64 \
	tests/unit/frontend/check_findings \
	tests/unit/frontend/check_import_arithmetic \
	tests/unit/frontend/check_import_b \
	tests/unit/frontend/check_import_movement \
	tests/unit/frontend/check_loop_trips \
	tests/unit/frontend/check_model \
	tests/unit/frontend/check_part \
	tests/unit/frontend/check_sizes \
	tests/unit/frontend/check_symbols \
	tests/unit/frontend/check_symbols_graphs \
	tests/unit/frontend/check_symbols_windows \
	tests/unit/frontend/check_tensor \
	tests/unit/frontend/check_value \
	tests/unit/frontend/check_wire_scan \
	tests/unit/hlo/check_activation \
	tests/unit/hlo/check_affine \
	tests/unit/hlo/check_attention \
	tests/unit/hlo/check_bind \
	tests/unit/hlo/check_element \
	tests/unit/hlo/check_fold_sizes \
	tests/unit/hlo/check_gradient \
	tests/unit/hlo/check_hlo_text \
	tests/unit/hlo/check_hlo_verify \
	tests/unit/hlo/check_hostile_text \
	tests/unit/hlo/check_loop_trips \
	tests/unit/hlo/check_pass \
	tests/unit/hlo/check_passes \
	tests/unit/hlo/check_pattern \
	tests/unit/hlo/check_qdq_fusion \
	tests/unit/hlo/check_quantized \
	tests/unit/hlo/check_same_values \
	tests/unit/hlo/check_softmax \
	tests/unit/hlo/check_value_range \
	tests/unit/lower/check_divide \
	tests/unit/lower/check_kernels \
	tests/unit/lower/check_lower \
	tests/unit/plugin/check_contents \
	tests/unit/plugin/check_opened_file \
	tests/unit/plugin/check_options \
	tests/unit/plugin/check_precompute \
	tests/unit/plugin/check_profile \
	tests/unit/plugin/check_programs \
	tests/unit/plugin/check_progress \
	tests/unit/plugin/check_segments \
	tests/unit/plugin/check_session \
	tests/unit/plugin/check_session_threads \
	tests/unit/plugin/check_specialise \
	tests/unit/runtime/check_binding \
	tests/unit/runtime/check_code_loader \
	tests/unit/runtime/check_emulated_device \
	tests/unit/runtime/check_image \
	tests/unit/runtime/check_recorder \
	tests/unit/runtime/check_run_memory \
	tests/unit/runtime/check_size_text \
	tests/unit/runtime/check_staging \
	tests/unit/runtime/check_thread_pool \
	tests/unit/runtime/check_told \
	tests/unit/runtime/check_weight_pool \
	tests/unit/verify/check_compare
test_programs = \
	tests/api/prog_locale \
	tests/dynamic/prog_symbols \
	tests/fuzz/bytes/prog_fuzz_bytes \
	tests/hlo/prog_run_pass \
	tests/hostile/prog_hostile \
	tests/hostile/prog_images \
	tests/target/prog_machine_objects
test_modules = \
	tests/api/module_device_backend.la \
	tests/api/module_failing_malloc.la \
	tests/api/module_faulty_backend.la \
	tests/api/module_toy_backend.la \
	tests/conformance/module_apart_backend.la \
	tests/unit/backend_gpu/module_fake_cuda.la
ptx_sources = \
	tests/ptx/parse.c \
	tests/ptx/parse_names.c \
	tests/ptx/run.c \
	tests/ptx/scalar.c \
	tests/ptx/warp.c
test_helper_sources = \
	tests/fuzz/bytes/mutate.c \
	tests/fuzz/bytes/targets.c \
	tests/hlo/general_program.c \
	tests/hlo/same_values.c \
	tests/target/machine_modules.c \
	tests/target/object_names.c \
	tests/target/text_case.c \
	tests/target/two_targets.c \
	tests/unit/backend_gpu/cuda_case.c \
	tests/unit/backend_ref/eval_case.c \
	tests/unit/emit/blocks/block_case.c \
	tests/unit/emit/emit_case.c \
	tests/unit/emit/kernel_case.c \
	tests/unit/emit/kernel_test.c \
	tests/unit/emit/ptx_case.c \
	tests/unit/emit/sizes_case.c \
	tests/unit/plugin/session_case.c
script_tests = \
	tests/abi/test-abi \
	tests/abi/test-backend-abi \
	tests/abi/test-kernel-abi \
	tests/aot/test-behaviour \
	tests/aot/test-carry \
	tests/aot/test-cmake \
	tests/aot/test-emitted-examples \
	tests/aot/test-examples \
	tests/aot/test-files \
	tests/aot/test-object-cpus \
	tests/aot/test-objects \
	tests/aot/test-objects-machines \
	tests/aot/test-objects-page \
	tests/aot/test-open-objects \
	tests/aot/test-sizes \
	tests/aot/test-small-nets \
	tests/api/test-api-page \
	tests/api/test-locale \
	tests/api/test-malloc \
	tests/api/test-memory-limits \
	tests/api/test-readme-backend \
	tests/attributes/test-attributes \
	tests/attributes/test-types \
	tests/build/test-additions \
	tests/build/test-byte-fuzzers \
	tests/build/test-distcheck \
	tests/build/test-distclean \
	tests/build/test-onednn3 \
	tests/build/test-ort-abi \
	tests/build/test-runner-machines \
	tests/build/test-sanitizers \
	tests/build/test-thread-sanitizer \
	tests/build/test-thread-sanitizer-graphs \
	tests/build/test-without-libraries \
	tests/conformance/test-conformance \
	tests/conformance/test-conformance-devices \
	tests/conformance/test-conformance-newer \
	tests/conformance/test-conformance-old \
	tests/contrib/test-contrib \
	tests/debug/test-gdb \
	tests/dynamic/test-dynamic \
	tests/dynamic/test-symbols \
	tests/e2e/provider/test-ort-cases \
	tests/e2e/provider/test-ort-ep \
	tests/e2e/test-cache \
	tests/e2e/test-checks \
	tests/e2e/test-cli \
	tests/e2e/test-cpus \
	tests/e2e/test-edges \
	tests/e2e/test-gpu-errors \
	tests/e2e/test-light-models \
	tests/e2e/test-missing-library \
	tests/e2e/test-ocr \
	tests/e2e/test-other-machines \
	tests/e2e/test-quantized \
	tests/e2e/test-real-models \
	tests/e2e/test-runner \
	tests/e2e/test-skipped-passes \
	tests/e2e/test-tensor-files \
	tests/e2e/test-tune \
	tests/fuzz/bytes/test-byte-fuzz \
	tests/fuzz/test-fuzz \
	tests/fuzz/test-planted \
	tests/gpu/test-ptx \
	tests/gpu/test-ptx-runs \
	tests/hlo/test-run-hlo \
	tests/hostile/test-bombs \
	tests/hostile/test-hostile \
	tests/images/test-images \
	tests/models/test-models \
	tests/models/test-models-full \
	tests/onnxifi/test-caffe2 \
	tests/onnxifi/test-driver \
	tests/onnxifi/test-loader \
	tests/test-compile-commands \
	tests/test-format \
	tests/test-glossary \
	tests/test-includes \
	tests/test-libs \
	tests/test-man \
	tests/test-operators \
	tests/test-sources \
	tests/test-structure \
	tests/versions/test-versions \
	tests/walk/test-walk
hlo_tests = \
	tests/hlo/attention/counted.hlo \
	tests/hlo/attention/not.hlo \
	tests/hlo/attention/projection.hlo \
	tests/hlo/attention/repeated.hlo \
	tests/hlo/attention/scaled.hlo \
	tests/hlo/attention/zeros.hlo \
	tests/hlo/batch_norm/chain.hlo \
	tests/hlo/batch_norm/large.hlo \
	tests/hlo/batch_norm/narrow.hlo \
	tests/hlo/batch_norm/not.hlo \
	tests/hlo/batch_norm/rounded.hlo \
	tests/hlo/batch_norm/steps.hlo \
	tests/hlo/batch_norm/types.hlo \
	tests/hlo/concat_in_place/chain.hlo \
	tests/hlo/concat_in_place/left.hlo \
	tests/hlo/concat_in_place/rows.hlo \
	tests/hlo/concat_in_place/symbols.hlo \
	tests/hlo/cse/check.hlo \
	tests/hlo/cse/equal.hlo \
	tests/hlo/cse/random.hlo \
	tests/hlo/dce/branches.hlo \
	tests/hlo/dce/carried.hlo \
	tests/hlo/dce/check.hlo \
	tests/hlo/dce/random.hlo \
	tests/hlo/dce/unused.hlo \
	tests/hlo/dot_canonicalization/dots.hlo \
	tests/hlo/dot_merger/attention.hlo \
	tests/hlo/dot_merger/many.hlo \
	tests/hlo/dot_merger/moved.hlo \
	tests/hlo/dot_merger/not.hlo \
	tests/hlo/epilogue/dead.hlo \
	tests/hlo/epilogue/hard-swish.hlo \
	tests/hlo/epilogue/residual.hlo \
	tests/hlo/epilogue/small_weights.hlo \
	tests/hlo/epilogue/small_weights_by_channels.hlo \
	tests/hlo/epilogue/small_weights_by_rows.hlo \
	tests/hlo/epilogue/spelled-out.hlo \
	tests/hlo/epilogue/swish.hlo \
	tests/hlo/epilogue/symbols.hlo \
	tests/hlo/fold/arithmetic.hlo \
	tests/hlo/fold/multiple.hlo \
	tests/hlo/fold/random.hlo \
	tests/hlo/gather_to_broadcast/heads.hlo \
	tests/hlo/gather_to_broadcast/stretched.hlo \
	tests/hlo/gather_to_broadcast/takes.hlo \
	tests/hlo/gather_to_slice/checks.hlo \
	tests/hlo/gather_to_slice/exported.hlo \
	tests/hlo/gather_to_slice/failing.hlo \
	tests/hlo/gather_to_slice/gather.hlo \
	tests/hlo/gather_to_slice/left.hlo \
	tests/hlo/gather_to_slice/negative.hlo \
	tests/hlo/gather_to_slice/scatter.hlo \
	tests/hlo/inline_composites/nested.hlo \
	tests/hlo/integer_sums/bounds.hlo \
	tests/hlo/integer_sums/dynamic.hlo \
	tests/hlo/integer_sums/exact.hlo \
	tests/hlo/integer_sums/refused.hlo \
	tests/hlo/integer_sums/requantized.hlo \
	tests/hlo/integer_sums/s16.hlo \
	tests/hlo/layout/nothing.hlo \
	tests/hlo/layout/residual.hlo \
	tests/hlo/layout/shuffle.hlo \
	tests/hlo/layout/take.hlo \
	tests/hlo/layout/take_symbols.hlo \
	tests/hlo/lift_scalars/factors.hlo \
	tests/hlo/lift_scalars/particular.hlo \
	tests/hlo/lift_scalars/shared.hlo \
	tests/hlo/lift_scalars/zero_points.hlo \
	tests/hlo/lookup_tables/chain.hlo \
	tests/hlo/loop_fusion/chain.hlo \
	tests/hlo/loop_fusion/cut-up.hlo \
	tests/hlo/loop_fusion/cycle.hlo \
	tests/hlo/loop_fusion/indices.hlo \
	tests/hlo/loop_fusion/many_operands.hlo \
	tests/hlo/loop_fusion/moved_together.hlo \
	tests/hlo/loop_fusion/parts.hlo \
	tests/hlo/loop_fusion/rows_then_transpose.hlo \
	tests/hlo/loop_fusion/siblings.hlo \
	tests/hlo/loop_fusion/sum_read_twice.hlo \
	tests/hlo/loop_fusion/taken.hlo \
	tests/hlo/qdq_fusion/bias.hlo \
	tests/hlo/qdq_fusion/colours.hlo \
	tests/hlo/qdq_fusion/convolution.hlo \
	tests/hlo/qdq_fusion/dynamic.hlo \
	tests/hlo/qdq_fusion/pool.hlo \
	tests/hlo/qdq_fusion/refused.hlo \
	tests/hlo/qdq_fusion/s16.hlo \
	tests/hlo/qdq_fusion/symbols.hlo \
	tests/hlo/qdq_fusion/transpose.hlo \
	tests/hlo/reduce_fusion/softmax.hlo \
	tests/hlo/reduce_fusion/variance.hlo \
	tests/hlo/row_fusion/columns.hlo \
	tests/hlo/row_fusion/groups.hlo \
	tests/hlo/row_fusion/not.hlo \
	tests/hlo/row_fusion/residual.hlo \
	tests/hlo/row_fusion/softmax.hlo \
	tests/hlo/row_fusion/symbols.hlo \
	tests/hlo/row_fusion/unused.hlo \
	tests/hlo/simplify/arithmetic.hlo \
	tests/hlo/simplify/control.hlo \
	tests/hlo/simplify/convert.hlo \
	tests/hlo/simplify/index.hlo \
	tests/hlo/simplify/movement.hlo \
	tests/hlo/simplify/reduce.hlo \
	tests/hlo/simplify/root.hlo \
	tests/hlo/simplify/scatter.hlo \
	tests/hlo/simplify/transpose.hlo \
	tests/hlo/simplify/turned_ones.hlo \
	tests/hlo/simplify/update.hlo \
	tests/hlo/text/all-ops.hlo \
	tests/hlo/text/names.hlo \
	tests/hlo/text/refused-empty-fusion.hlo \
	tests/hlo/text/refused-shape.hlo \
	tests/hlo/text/refused-version.hlo \
	tests/hlo/transpose_sinking/dot.hlo \
	tests/hlo/transpose_sinking/follow-contraction.hlo \
	tests/hlo/transpose_sinking/sink.hlo \
	tests/hlo/transposed_convolution/groups.hlo \
	tests/hlo/transposed_convolution/phases.hlo \
	tests/hlo/transposed_convolution/split.hlo \
	tests/hlo/transposed_convolution/symbols.hlo
tests_files = \
	tests/README \
	tests/abi/ONNX_XLA_1.def \
	tests/abi/backends \
	tests/abi/blocks \
	tests/abi/kernels \
	tests/abi/test-abi \
	tests/abi/test-backend-abi \
	tests/abi/test-kernel-abi \
	tests/allowed-skips \
	tests/aot/behaviour.py \
	tests/aot/carry.py \
	tests/aot/cortex_m/mps2.ld \
	tests/aot/cortex_m/start.h \
	tests/aot/cortex_machine.py \
	tests/aot/cpus.py \
	tests/aot/elements.py \
	tests/aot/examples.py \
	tests/aot/expected/failures \
	tests/aot/expected/failures-open \
	tests/aot/files.py \
	tests/aot/find_tools.sh \
	tests/aot/machines.py \
	tests/aot/mains/behaviour.h \
	tests/aot/mains/carry.h \
	tests/aot/mains/expect.h \
	tests/aot/mains/run_case.h \
	tests/aot/objects.py \
	tests/aot/onnx_files.py \
	tests/aot/onnx_writer.py \
	tests/aot/page_models.py \
	tests/aot/programs.py \
	tests/aot/sizes.py \
	tests/aot/small_nets.py \
	tests/aot/test-behaviour \
	tests/aot/test-carry \
	tests/aot/test-cmake \
	tests/aot/test-emitted-examples \
	tests/aot/test-examples \
	tests/aot/test-files \
	tests/aot/test-object-cpus \
	tests/aot/test-objects \
	tests/aot/test-objects-machines \
	tests/aot/test-objects-page \
	tests/aot/test-open-objects \
	tests/aot/test-sizes \
	tests/aot/test-small-nets \
	tests/aot/wasm/stdio.h \
	tests/aot/wasm/stdlib.h \
	tests/aot/wasm/string.h \
	tests/aot/wasm_machine.py \
	tests/api/api_client.h \
	tests/api/little_room.h \
	tests/api/test-api-page \
	tests/api/test-locale \
	tests/api/test-malloc \
	tests/api/test-memory-limits \
	tests/api/test-readme-backend \
	tests/api/write_model.h \
	tests/attributes/algebra.py \
	tests/attributes/attention.py \
	tests/attributes/cases.py \
	tests/attributes/elements.py \
	tests/attributes/gradients.py \
	tests/attributes/images.py \
	tests/attributes/make_cases.py \
	tests/attributes/make_types.py \
	tests/attributes/oracles.py \
	tests/attributes/recurrent.py \
	tests/attributes/spectra.py \
	tests/attributes/test-attributes \
	tests/attributes/test-types \
	tests/attributes/training.py \
	tests/attributes/windows.py \
	tests/bench/README \
	tests/bench/bench_models.py \
	tests/bench/chart.py \
	tests/bench/client.c \
	tests/bench/client.h \
	tests/bench/client_jax.py \
	tests/bench/clients.py \
	tests/bench/convolutions.py \
	tests/bench/engine_openvino.c \
	tests/bench/engine_ort.c \
	tests/bench/engine_ours.c \
	tests/bench/floor.c \
	tests/bench/floor.py \
	tests/bench/linked/README \
	tests/bench/linked/emx_engine.c \
	tests/bench/linked/object_engine.c \
	tests/bench/linked/object_memory.h \
	tests/bench/linked/object_start.c \
	tests/bench/linked/objects.py \
	tests/bench/make-model \
	tests/bench/make_model.py \
	tests/bench/models \
	tests/bench/nets_decoders.py \
	tests/bench/nets_sequence.py \
	tests/bench/nets_vision.py \
	tests/bench/ops \
	tests/bench/ops.py \
	tests/bench/ops_table.py \
	tests/bench/page.py \
	tests/bench/rows.py \
	tests/bench/run-bench \
	tests/bench/run-sizes \
	tests/bench/run_bench.py \
	tests/bench/run_sizes.py \
	tests/bench/size_lists.py \
	tests/bench/statistic.py \
	tests/build/scratch.sh \
	tests/build/test-additions \
	tests/build/test-byte-fuzzers \
	tests/build/test-distcheck \
	tests/build/test-distclean \
	tests/build/test-onednn3 \
	tests/build/test-ort-abi \
	tests/build/test-runner-machines \
	tests/build/test-sanitizers \
	tests/build/test-thread-sanitizer \
	tests/build/test-thread-sanitizer-graphs \
	tests/build/test-without-libraries \
	tests/compare-builds \
	tests/conformance/expected-failures-cpu \
	tests/conformance/expected-failures-newer-cpu \
	tests/conformance/expected-failures-newer-ref \
	tests/conformance/expected-failures-old-cpu \
	tests/conformance/expected-failures-old-ref \
	tests/conformance/expected-failures-ref \
	tests/conformance/make-cases \
	tests/conformance/run-cases \
	tests/conformance/test-conformance \
	tests/conformance/test-conformance-devices \
	tests/conformance/test-conformance-newer \
	tests/conformance/test-conformance-old \
	tests/contrib/attention.py \
	tests/contrib/decoder_model.py \
	tests/contrib/fused.py \
	tests/contrib/general.py \
	tests/contrib/hybrid.py \
	tests/contrib/images.py \
	tests/contrib/machine_learning.py \
	tests/contrib/make_cases.py \
	tests/contrib/maps.py \
	tests/contrib/optimised_models.py \
	tests/contrib/products.py \
	tests/contrib/quantised.py \
	tests/contrib/refusals.py \
	tests/contrib/runtime_cases.py \
	tests/contrib/scikit_learn.py \
	tests/contrib/sequences.py \
	tests/contrib/strings.py \
	tests/contrib/test-contrib \
	tests/contrib/trees.py \
	tests/contrib/without_kernels.py \
	tests/count-cases \
	tests/count-results \
	tests/debug/test-gdb \
	tests/dynamic/make_cases.py \
	tests/dynamic/nms_cases.py \
	tests/dynamic/open_cases.py \
	tests/dynamic/sequence_cases.py \
	tests/dynamic/sequence_programs.py \
	tests/dynamic/test-dynamic \
	tests/dynamic/test-symbols \
	tests/e2e/README \
	tests/e2e/check_values.py \
	tests/e2e/compare_ort.py \
	tests/e2e/edge_values.py \
	tests/e2e/light_models.py \
	tests/e2e/provider/ort_cases.py \
	tests/e2e/provider/ort_dynamic.py \
	tests/e2e/provider/ort_ep.py \
	tests/e2e/provider/ort_models.py \
	tests/e2e/provider/ort_sessions.py \
	tests/e2e/provider/ort_state.py \
	tests/e2e/provider/ort_time.py \
	tests/e2e/provider/ort_uses.py \
	tests/e2e/provider/own_session.py \
	tests/e2e/provider/test-ort-cases \
	tests/e2e/provider/test-ort-ep \
	tests/e2e/quantized_models.py \
	tests/e2e/randomize_light.py \
	tests/e2e/real_models.py \
	tests/e2e/tensor_files.py \
	tests/e2e/test-cache \
	tests/e2e/test-checks \
	tests/e2e/test-cli \
	tests/e2e/test-cpus \
	tests/e2e/test-edges \
	tests/e2e/test-gpu-errors \
	tests/e2e/test-light-models \
	tests/e2e/test-missing-library \
	tests/e2e/test-ocr \
	tests/e2e/test-other-machines \
	tests/e2e/test-quantized \
	tests/e2e/test-real-models \
	tests/e2e/test-runner \
	tests/e2e/test-skipped-passes \
	tests/e2e/test-tensor-files \
	tests/e2e/test-tune \
	tests/e2e/transformer_models.py \
	tests/fake_driver.h \
	tests/fetch-data \
	tests/fuzz/README \
	tests/fuzz/algorithms.py \
	tests/fuzz/build.py \
	tests/fuzz/bytes/README \
	tests/fuzz/bytes/corpus/hlo/seed-batch_norm-chain.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-cse-equal.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-cse-random.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-dce-branches.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-dce-carried.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-dce-random.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-epilogue-residual.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-epilogue-swish.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-fold-arithmetic.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-fold-multiple.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-fold-random.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-inline_composites-nested.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-layout-nothing.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-layout-residual.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-layout-shuffle.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-loop_fusion-chain.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-loop_fusion-cycle.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-loop_fusion-siblings.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-reduce_fusion-softmax.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-reduce_fusion-variance.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-simplify-arithmetic.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-simplify-control.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-simplify-convert.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-text-names.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-text-refused-shape.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-text-refused-version.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-transpose_sinking-dot.hlo \
	tests/fuzz/bytes/corpus/hlo/seed-transpose_sinking-sink.hlo \
	tests/fuzz/bytes/corpus/model/no-outputs.onnx \
	tests/fuzz/bytes/corpus/model/seed-add.onnx \
	tests/fuzz/bytes/corpus/model/seed-any_size.onnx \
	tests/fuzz/bytes/corpus/model/seed-attention_3d.onnx \
	tests/fuzz/bytes/corpus/model/seed-cast_FLOAT_to_INT4.onnx \
	tests/fuzz/bytes/corpus/model/seed-constant.onnx \
	tests/fuzz/bytes/corpus/model/seed-conv_with_strides_padding.onnx \
	tests/fuzz/bytes/corpus/model/seed-einsum_batch_matmul.onnx \
	tests/fuzz/bytes/corpus/model/seed-expand_dim_changed.onnx \
	tests/fuzz/bytes/corpus/model/seed-gemm_all_attributes.onnx \
	tests/fuzz/bytes/corpus/model/seed-gridsample.onnx \
	tests/fuzz/bytes/corpus/model/seed-if.onnx \
	tests/fuzz/bytes/corpus/model/seed-loop11.onnx \
	tests/fuzz/bytes/corpus/model/seed-lstm_with_peepholes.onnx \
	tests/fuzz/bytes/corpus/model/seed-maxpool_2d_ceil.onnx \
	tests/fuzz/bytes/corpus/model/seed-onehot_with_axis.onnx \
	tests/fuzz/bytes/corpus/model/seed-quantizelinear_axis.onnx \
	tests/fuzz/bytes/corpus/model/seed-range_float_type_positive_delta_expanded.onnx \
	tests/fuzz/bytes/corpus/model/seed-reshape_negative_dim.onnx \
	tests/fuzz/bytes/corpus/model/seed-resize_upsample_scales_nearest.onnx \
	tests/fuzz/bytes/corpus/model/seed-scan9_sum.onnx \
	tests/fuzz/bytes/corpus/model/seed-scatternd.onnx \
	tests/fuzz/bytes/corpus/model/seed-sequence_map_identity_1_sequence.onnx \
	tests/fuzz/bytes/corpus/model/seed-slice.onnx \
	tests/fuzz/bytes/corpus/model/seed-split_variable_parts_1d_opset18.onnx \
	tests/fuzz/bytes/corpus/model/seed-stft.onnx \
	tests/fuzz/bytes/corpus/model/seed-top_k.onnx \
	tests/fuzz/bytes/corpus/npy/seed-bool.npy \
	tests/fuzz/bytes/corpus/npy/seed-c8.npy \
	tests/fuzz/bytes/corpus/npy/seed-empty.npy \
	tests/fuzz/bytes/corpus/npy/seed-f2.npy \
	tests/fuzz/bytes/corpus/npy/seed-f4.npy \
	tests/fuzz/bytes/corpus/npy/seed-f8.npy \
	tests/fuzz/bytes/corpus/npy/seed-fortran.npy \
	tests/fuzz/bytes/corpus/npy/seed-i1.npy \
	tests/fuzz/bytes/corpus/npy/seed-scalar.npy \
	tests/fuzz/bytes/corpus/npy/seed-u8.npy \
	tests/fuzz/bytes/corpus/tensor/continuation-bytes.pb \
	tests/fuzz/bytes/corpus/tensor/seed-add-input_0.pb \
	tests/fuzz/bytes/corpus/tensor/seed-add-input_1.pb \
	tests/fuzz/bytes/corpus/tensor/seed-add-output_0.pb \
	tests/fuzz/bytes/corpus/tensor/seed-top_k-input_0.pb \
	tests/fuzz/bytes/corpus/tensor/seed-top_k-input_1.pb \
	tests/fuzz/bytes/corpus/tensor/seed-top_k-output_0.pb \
	tests/fuzz/bytes/corpus/tensor/seed-top_k-output_1.pb \
	tests/fuzz/bytes/corpus/value/seed-identity_opt.pb \
	tests/fuzz/bytes/corpus/value/seed-maps.pb \
	tests/fuzz/bytes/corpus/value/seed-numbers.pb \
	tests/fuzz/bytes/corpus/value/seed-optional_get_element_sequence.pb \
	tests/fuzz/bytes/corpus/value/seed-optional_has_element_empty_optional_input.pb \
	tests/fuzz/bytes/corpus/value/seed-sequence_insert_at_front.pb \
	tests/fuzz/bytes/corpus/value/seed-words.pb \
	tests/fuzz/bytes/make-corpus \
	tests/fuzz/bytes/make-images \
	tests/fuzz/bytes/mutate.h \
	tests/fuzz/bytes/targets.h \
	tests/fuzz/bytes/test-byte-fuzz \
	tests/fuzz/check.py \
	tests/fuzz/check_errors.py \
	tests/fuzz/check_peers.py \
	tests/fuzz/errors.py \
	tests/fuzz/faults/__init__.py \
	tests/fuzz/faults/gpu.py \
	tests/fuzz/faults/kernels.py \
	tests/fuzz/faults/mends.py \
	tests/fuzz/faults/passes.py \
	tests/fuzz/faults/plans.py \
	tests/fuzz/faults/sizes.py \
	tests/fuzz/finish.py \
	tests/fuzz/found/bitcast-of-2-bits/model.onnx \
	tests/fuzz/found/bitcast-of-2-bits/test_data_set_0/input_0.pb \
	tests/fuzz/found/bitcast-of-2-bits/test_data_set_0/output_0.pb \
	tests/fuzz/found/bitcasts-of-one-value/model.onnx \
	tests/fuzz/found/bitcasts-of-one-value/test_data_set_0/input_0.pb \
	tests/fuzz/found/bitcasts-of-one-value/test_data_set_0/output_0.pb \
	tests/fuzz/found/bitcasts-of-one-value/test_data_set_0/output_1.pb \
	tests/fuzz/found/bitcasts-of-one-value/test_data_set_1/input_0.pb \
	tests/fuzz/found/bitcasts-of-one-value/test_data_set_1/output_0.pb \
	tests/fuzz/found/bitcasts-of-one-value/test_data_set_1/output_1.pb \
	tests/fuzz/found/bitcasts-of-one-value/test_data_set_2/input_0.pb \
	tests/fuzz/found/bitcasts-of-one-value/test_data_set_2/output_0.pb \
	tests/fuzz/found/bitcasts-of-one-value/test_data_set_2/output_1.pb \
	tests/fuzz/found/fractions-of-sizes-repeated/model.onnx \
	tests/fuzz/found/fractions-of-sizes-repeated/note \
	tests/fuzz/found/fractions-of-sizes-repeated/test_data_set_0/input_0.pb \
	tests/fuzz/found/fractions-of-sizes-repeated/test_data_set_0/output_0.pb \
	tests/fuzz/found/fractions-of-sizes-repeated/test_data_set_0/output_1.pb \
	tests/fuzz/found/fractions-of-sizes-repeated/test_data_set_1/input_0.pb \
	tests/fuzz/found/fractions-of-sizes-repeated/test_data_set_1/output_0.pb \
	tests/fuzz/found/fractions-of-sizes-repeated/test_data_set_1/output_1.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/model.onnx \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_0.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_1.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_2.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_3.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_4.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_5.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_6.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_7.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_8.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/input_9.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/output_0.pb \
	tests/fuzz/found/gather-of-a-size-that-depends-on-data/test_data_set_0/output_1.pb \
	tests/fuzz/found/odd-zero-point/model.onnx \
	tests/fuzz/found/odd-zero-point/note \
	tests/fuzz/found/odd-zero-point/test_data_set_0/input_0.pb \
	tests/fuzz/found/odd-zero-point/test_data_set_0/output_0.pb \
	tests/fuzz/found/product-of-transposed-heads/model.onnx \
	tests/fuzz/found/product-of-transposed-heads/test_data_set_0/input_0.pb \
	tests/fuzz/found/product-of-transposed-heads/test_data_set_0/input_1.pb \
	tests/fuzz/found/product-of-transposed-heads/test_data_set_0/output_0.pb \
	tests/fuzz/found/product-of-transposed-heads/test_data_set_0/output_1.pb \
	tests/fuzz/found/relu-of-a-scalar-reshaped/model.onnx \
	tests/fuzz/found/relu-of-a-scalar-reshaped/note \
	tests/fuzz/found/relu-of-a-scalar-reshaped/test_data_set_0/input_0.pb \
	tests/fuzz/found/relu-of-a-scalar-reshaped/test_data_set_0/output_0.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/model.onnx \
	tests/fuzz/found/scan-output-of-a-captured-array/note \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_0/input_0.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_0/input_1.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_0/input_2.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_0/output_0.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_0/output_1.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_1/input_0.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_1/input_1.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_1/input_2.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_1/output_0.pb \
	tests/fuzz/found/scan-output-of-a-captured-array/test_data_set_1/output_1.pb \
	tests/fuzz/found/slice-to-a-large-size/model.onnx \
	tests/fuzz/found/slice-to-a-large-size/note \
	tests/fuzz/found/slice-to-a-large-size/test_data_set_0/input_0.pb \
	tests/fuzz/found/slice-to-a-large-size/test_data_set_0/input_1.pb \
	tests/fuzz/found/slice-to-a-large-size/test_data_set_0/output_0.pb \
	tests/fuzz/found/slice-to-a-large-size/test_data_set_1/input_0.pb \
	tests/fuzz/found/slice-to-a-large-size/test_data_set_1/input_1.pb \
	tests/fuzz/found/slice-to-a-large-size/test_data_set_1/output_0.pb \
	tests/fuzz/found/slice-to-a-large-size/test_data_set_2/input_0.pb \
	tests/fuzz/found/slice-to-a-large-size/test_data_set_2/input_1.pb \
	tests/fuzz/found/slice-to-a-large-size/test_data_set_2/output_0.pb \
	tests/fuzz/found/weights-of-a-program-that-failed/model.onnx \
	tests/fuzz/found/weights-of-a-program-that-failed/note \
	tests/fuzz/found/weights-of-a-program-that-failed/test_data_set_0/input_0.pb \
	tests/fuzz/found/weights-of-a-program-that-failed/test_data_set_0/input_1.pb \
	tests/fuzz/found/weights-of-a-program-that-failed/test_data_set_0/input_2.pb \
	tests/fuzz/found/weights-of-a-program-that-failed/test_data_set_0/input_3.pb \
	tests/fuzz/found/weights-of-a-program-that-failed/test_data_set_0/input_4.pb \
	tests/fuzz/found/weights-of-a-program-that-failed/test_data_set_0/output_0.pb \
	tests/fuzz/found/weights-of-a-program-that-failed/test_data_set_0/output_1.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/model.onnx \
	tests/fuzz/found/weights-of-a-segment-that-failed/note \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/input_0.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/input_1.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/input_2.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/input_3.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/input_4.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/input_5.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/input_6.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/output_0.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/output_1.pb \
	tests/fuzz/found/weights-of-a-segment-that-failed/test_data_set_0/output_2.pb \
	tests/fuzz/fuzz.py \
	tests/fuzz/general.py \
	tests/fuzz/hlo.py \
	tests/fuzz/idioms/__init__.py \
	tests/fuzz/idioms/attention.py \
	tests/fuzz/idioms/decisions.py \
	tests/fuzz/idioms/heads.py \
	tests/fuzz/idioms/language.py \
	tests/fuzz/idioms/loops.py \
	tests/fuzz/idioms/pieces.py \
	tests/fuzz/idioms/quantized.py \
	tests/fuzz/idioms/residual.py \
	tests/fuzz/idioms/updates.py \
	tests/fuzz/idioms/vision.py \
	tests/fuzz/models.py \
	tests/fuzz/ops/control.py \
	tests/fuzz/ops/elementwise.py \
	tests/fuzz/ops/microsoft.py \
	tests/fuzz/ops/movement.py \
	tests/fuzz/ops/nn.py \
	tests/fuzz/ops/quantize.py \
	tests/fuzz/ops/random.py \
	tests/fuzz/ops/reduce.py \
	tests/fuzz/ops/signal.py \
	tests/fuzz/peers.py \
	tests/fuzz/planted.py \
	tests/fuzz/registry.py \
	tests/fuzz/report.py \
	tests/fuzz/rows.py \
	tests/fuzz/sanitizers.py \
	tests/fuzz/sequences.py \
	tests/fuzz/shrink.py \
	tests/fuzz/sizes.py \
	tests/fuzz/sweep.py \
	tests/fuzz/test-fuzz \
	tests/fuzz/test-planted \
	tests/fuzz/values.py \
	tests/fuzz/variants.py \
	tests/fuzz/workers.py \
	tests/fuzz/xla.py \
	tests/gpu/README \
	tests/gpu/bench-gpu \
	tests/gpu/check-gpu \
	tests/gpu/kit \
	tests/gpu/launches \
	tests/gpu/make_products.py \
	tests/gpu/results/README \
	tests/gpu/test-ptx \
	tests/gpu/test-ptx-runs \
	tests/hlo/attention/counted.expected \
	tests/hlo/attention/not.expected \
	tests/hlo/attention/projection.expected \
	tests/hlo/attention/repeated.expected \
	tests/hlo/attention/scaled.expected \
	tests/hlo/attention/zeros.expected \
	tests/hlo/batch_norm/chain.expected \
	tests/hlo/batch_norm/large.expected \
	tests/hlo/batch_norm/narrow.expected \
	tests/hlo/batch_norm/not.expected \
	tests/hlo/batch_norm/rounded.expected \
	tests/hlo/batch_norm/steps.expected \
	tests/hlo/batch_norm/types.expected \
	tests/hlo/concat_in_place/chain.expected \
	tests/hlo/concat_in_place/left.expected \
	tests/hlo/concat_in_place/rows.expected \
	tests/hlo/concat_in_place/symbols.expected \
	tests/hlo/cse/check.expected \
	tests/hlo/cse/equal.expected \
	tests/hlo/cse/random.expected \
	tests/hlo/dce/branches.expected \
	tests/hlo/dce/carried.expected \
	tests/hlo/dce/check.expected \
	tests/hlo/dce/random.expected \
	tests/hlo/dce/unused.expected \
	tests/hlo/dot_canonicalization/dots.expected \
	tests/hlo/dot_merger/attention.expected \
	tests/hlo/dot_merger/many.expected \
	tests/hlo/dot_merger/moved.expected \
	tests/hlo/dot_merger/not.expected \
	tests/hlo/epilogue/dead.expected \
	tests/hlo/epilogue/hard-swish.expected \
	tests/hlo/epilogue/residual.expected \
	tests/hlo/epilogue/small_weights.expected \
	tests/hlo/epilogue/small_weights_by_channels.expected \
	tests/hlo/epilogue/small_weights_by_rows.expected \
	tests/hlo/epilogue/spelled-out.expected \
	tests/hlo/epilogue/swish.expected \
	tests/hlo/epilogue/symbols.expected \
	tests/hlo/fold/arithmetic.expected \
	tests/hlo/fold/multiple.expected \
	tests/hlo/fold/random.expected \
	tests/hlo/gather_to_broadcast/heads.expected \
	tests/hlo/gather_to_broadcast/stretched.expected \
	tests/hlo/gather_to_broadcast/takes.expected \
	tests/hlo/gather_to_slice/checks.expected \
	tests/hlo/gather_to_slice/exported.expected \
	tests/hlo/gather_to_slice/failing.expected \
	tests/hlo/gather_to_slice/gather.expected \
	tests/hlo/gather_to_slice/left.expected \
	tests/hlo/gather_to_slice/negative.expected \
	tests/hlo/gather_to_slice/scatter.expected \
	tests/hlo/general_program.h \
	tests/hlo/inline_composites/nested.expected \
	tests/hlo/integer_sums/bounds.expected \
	tests/hlo/integer_sums/dynamic.expected \
	tests/hlo/integer_sums/exact.expected \
	tests/hlo/integer_sums/refused.expected \
	tests/hlo/integer_sums/requantized.expected \
	tests/hlo/integer_sums/s16.expected \
	tests/hlo/layout/nothing.expected \
	tests/hlo/layout/residual.expected \
	tests/hlo/layout/shuffle.expected \
	tests/hlo/layout/take.expected \
	tests/hlo/layout/take_symbols.expected \
	tests/hlo/lift_scalars/factors.expected \
	tests/hlo/lift_scalars/particular.expected \
	tests/hlo/lift_scalars/shared.expected \
	tests/hlo/lift_scalars/zero_points.expected \
	tests/hlo/lookup_tables/chain.expected \
	tests/hlo/loop_fusion/chain.expected \
	tests/hlo/loop_fusion/cut-up.expected \
	tests/hlo/loop_fusion/cycle.expected \
	tests/hlo/loop_fusion/indices.expected \
	tests/hlo/loop_fusion/many_operands.expected \
	tests/hlo/loop_fusion/moved_together.expected \
	tests/hlo/loop_fusion/parts.expected \
	tests/hlo/loop_fusion/rows_then_transpose.expected \
	tests/hlo/loop_fusion/siblings.expected \
	tests/hlo/loop_fusion/sum_read_twice.expected \
	tests/hlo/loop_fusion/taken.expected \
	tests/hlo/qdq_fusion/bias.expected \
	tests/hlo/qdq_fusion/colours.expected \
	tests/hlo/qdq_fusion/convolution.expected \
	tests/hlo/qdq_fusion/dynamic.expected \
	tests/hlo/qdq_fusion/pool.expected \
	tests/hlo/qdq_fusion/refused.expected \
	tests/hlo/qdq_fusion/s16.expected \
	tests/hlo/qdq_fusion/symbols.expected \
	tests/hlo/qdq_fusion/transpose.expected \
	tests/hlo/reduce_fusion/softmax.expected \
	tests/hlo/reduce_fusion/variance.expected \
	tests/hlo/row_fusion/columns.expected \
	tests/hlo/row_fusion/groups.expected \
	tests/hlo/row_fusion/not.expected \
	tests/hlo/row_fusion/residual.expected \
	tests/hlo/row_fusion/softmax.expected \
	tests/hlo/row_fusion/symbols.expected \
	tests/hlo/row_fusion/unused.expected \
	tests/hlo/run-hlo \
	tests/hlo/same_values.h \
	tests/hlo/simplify/arithmetic.expected \
	tests/hlo/simplify/control.expected \
	tests/hlo/simplify/convert.expected \
	tests/hlo/simplify/index.expected \
	tests/hlo/simplify/movement.expected \
	tests/hlo/simplify/reduce.expected \
	tests/hlo/simplify/root.expected \
	tests/hlo/simplify/scatter.expected \
	tests/hlo/simplify/transpose.expected \
	tests/hlo/simplify/turned_ones.expected \
	tests/hlo/simplify/update.expected \
	tests/hlo/test-run-hlo \
	tests/hlo/test_target.h \
	tests/hlo/text/all-ops.expected \
	tests/hlo/text/names.expected \
	tests/hlo/text/refused-empty-fusion.expected \
	tests/hlo/text/refused-shape.expected \
	tests/hlo/text/refused-version.expected \
	tests/hlo/transpose_sinking/dot.expected \
	tests/hlo/transpose_sinking/follow-contraction.expected \
	tests/hlo/transpose_sinking/sink.expected \
	tests/hlo/transposed_convolution/groups.expected \
	tests/hlo/transposed_convolution/phases.expected \
	tests/hlo/transposed_convolution/split.expected \
	tests/hlo/transposed_convolution/symbols.expected \
	tests/hostile/hostile_more.py \
	tests/hostile/hostile_sequences.py \
	tests/hostile/make_bombs.py \
	tests/hostile/make_hostile.py \
	tests/hostile/run_bombs.py \
	tests/hostile/test-bombs \
	tests/hostile/test-hostile \
	tests/images/cases.py \
	tests/images/pictures.py \
	tests/images/refusals.py \
	tests/images/test-images \
	tests/lsan.supp \
	tests/made-cases \
	tests/models/README \
	tests/models/architecture.py \
	tests/models/by_optimum.py \
	tests/models/by_trees.py \
	tests/models/chaotic \
	tests/models/compare.py \
	tests/models/diffusion.py \
	tests/models/expected-refusals \
	tests/models/export.py \
	tests/models/graphs.py \
	tests/models/language.py \
	tests/models/nets.py \
	tests/models/page.py \
	tests/models/pictures.py \
	tests/models/recommenders.py \
	tests/models/run.py \
	tests/models/small \
	tests/models/speech.py \
	tests/models/test-models \
	tests/models/test-models-full \
	tests/models/text.py \
	tests/models/tiny.py \
	tests/models/trained.py \
	tests/models/vision_timm.py \
	tests/models/vision_torchvision.py \
	tests/onnxifi/README \
	tests/onnxifi/build-driver \
	tests/onnxifi/caffe2_models.py \
	tests/onnxifi/driver-skips \
	tests/onnxifi/driver.patch \
	tests/onnxifi/onnxifi_client.h \
	tests/onnxifi/test-caffe2 \
	tests/onnxifi/test-driver \
	tests/onnxifi/test-loader \
	tests/ptx/parse_internal.h \
	tests/ptx/ptx.h \
	tests/ptx/ptx_internal.h \
	tests/ptx/ptx_ops.def \
	tests/suite.h \
	tests/target/candidate_rows.h \
	tests/target/machine_modules.h \
	tests/target/object_names.h \
	tests/target/run_nets.h \
	tests/target/text_case.h \
	tests/target/two_targets.h \
	tests/test-compile-commands \
	tests/test-format \
	tests/test-glossary \
	tests/test-includes \
	tests/test-libs \
	tests/test-man \
	tests/test-operators \
	tests/test-sources \
	tests/test-structure \
	tests/tsan.supp \
	tests/unit/backend_gpu/cuda_case.h \
	tests/unit/backend_gpu/fake_cuda.h \
	tests/unit/backend_gpu/fake_cuda_compile.h \
	tests/unit/backend_gpu/fake_cuda_graph.h \
	tests/unit/backend_gpu/fake_cuda_state.h \
	tests/unit/backend_ref/eval_case.h \
	tests/unit/emit/attention_texts.h \
	tests/unit/emit/blocks/block_case.h \
	tests/unit/emit/emit_case.h \
	tests/unit/emit/kernel_case.h \
	tests/unit/emit/kernel_test.h \
	tests/unit/emit/kernel_texts.h \
	tests/unit/emit/ptx_case.h \
	tests/unit/emit/sizes_case.h \
	tests/unit/frontend/build_model.h \
	tests/unit/frontend/import_b_numbers.def \
	tests/unit/frontend/node_case.h \
	tests/unit/frontend/open_model.h \
	tests/unit/hlo/hlo_case.h \
	tests/unit/plugin/compiler_half.h \
	tests/unit/plugin/session_case.h \
	tests/unit/runtime/image_bytes.h \
	tests/untested \
	tests/versions/case.py \
	tests/versions/cases_control.py \
	tests/versions/cases_elementwise.py \
	tests/versions/cases_experimental.py \
	tests/versions/cases_movement.py \
	tests/versions/cases_nn.py \
	tests/versions/cases_reduce.py \
	tests/versions/exceptions \
	tests/versions/table.py \
	tests/versions/test-versions \
	tests/versions/write_cases.py \
	tests/walk/make-model \
	tests/walk/test-walk
tests_api_check_api_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_api_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_backend_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_backend_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_carry_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_carry_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_changed_files_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_changed_files_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_code_cache_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_code_cache_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_contents_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_contents_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_device_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_device_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_events_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_events_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_gpu_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_gpu_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_hostile_api_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_hostile_api_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_memory_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_memory_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_over_input_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_over_input_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_patterns_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_patterns_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_strings_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_strings_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_threads_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_threads_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_check_values_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_check_values_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_onnxifi_check_compatibility_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_onnxifi_check_compatibility_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_onnxifi_check_foxi_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_onnxifi_check_foxi_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_onnxifi_check_ids_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_onnxifi_check_ids_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_onnxifi_check_onnxifi_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_onnxifi_check_onnxifi_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_onnxifi_check_threads_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_onnxifi_check_threads_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_ptx_check_ptx_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_ptx_check_ptx_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_attention_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_attention_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_candidates_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_candidates_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_carry_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_carry_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_checked_runs_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_checked_runs_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_dynamic_m_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_dynamic_m_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_exact_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_exact_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_machines_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_machines_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_operations_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_operations_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_own_kernels_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_own_kernels_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_product_programs_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_product_programs_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_product_stacks_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_product_stacks_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_quantised_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_quantised_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_random_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_random_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_sizes_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_sizes_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_target_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_target_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_check_verify_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_check_verify_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_autotune_check_autotune_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_autotune_check_autotune_LDADD = $(LIBS_OF_AUTOTUNE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_autotune_check_log_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_autotune_check_log_LDADD = $(LIBS_OF_AUTOTUNE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_cpu_check_contraction_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_cpu_check_contraction_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_cpu_check_exec_target_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_cpu_check_exec_target_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_cpu_check_library_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_cpu_check_library_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_attention_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_attention_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_contraction_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_contraction_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_cuda_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_cuda_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_cuda_failures_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_cuda_failures_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_cuda_module_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_cuda_module_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_cuda_staging_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_cuda_staging_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_emulated_block_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_emulated_block_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_emulator_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_emulator_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_fake_cuda_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_fake_cuda_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_kernel_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_kernel_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_gpu_check_race_check_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_gpu_check_race_check_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_ref_check_computations_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_ref_check_computations_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_ref_check_ref_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_ref_check_ref_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_backend_ref_check_ref_target_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_backend_ref_check_ref_target_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_base_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_base_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_bounds_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_bounds_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_choice_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_choice_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_dim_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_dim_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_dtype_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_dtype_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_guard_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_guard_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_hash_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_hash_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_literal_list_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_literal_list_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_machine_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_machine_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_memory_span_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_memory_span_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_npy_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_npy_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_placement_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_placement_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_protobuf_wire_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_protobuf_wire_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_base_check_string_table_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_base_check_string_table_LDADD = $(LIBS_OF_BASE) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_block_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_block_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_block_attention_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_block_attention_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_block_copies_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_block_copies_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_block_nms_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_block_nms_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_block_scatter_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_block_scatter_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_block_sort_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_block_sort_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_block_transpose_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_block_transpose_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_blocks_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_blocks_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_last_block_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_last_block_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_mma_product_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_mma_product_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_scan_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_scan_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_team_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_team_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_blocks_check_tiled_product_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_blocks_check_tiled_product_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_depthwise_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_depthwise_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_depthwise_sizes_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_depthwise_sizes_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_emit_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_emit_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_emit_machines_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_emit_machines_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_emit_movement_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_emit_movement_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_emit_sizes_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_emit_sizes_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_emit_sizes_loops_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_emit_sizes_loops_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_emit_sizes_rows_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_emit_sizes_rows_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_emit_sums_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_emit_sums_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_flash_attention_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_flash_attention_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_gemm_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_gemm_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_position_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_position_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_product_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_product_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_product_sizes_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_product_sizes_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_split_similar_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_split_similar_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_winograd_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_winograd_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_check_winograd_sizes_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_check_winograd_sizes_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_math_check_math_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_math_check_math_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_emit_math_check_math_f64_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_emit_math_check_math_f64_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_findings_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_findings_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_import_arithmetic_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_import_arithmetic_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_import_b_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_import_b_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_import_movement_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_import_movement_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_loop_trips_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_loop_trips_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_model_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_model_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_part_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_part_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_sizes_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_sizes_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_symbols_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_symbols_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_symbols_graphs_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_symbols_graphs_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_symbols_windows_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_symbols_windows_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_tensor_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_tensor_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_value_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_value_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_frontend_check_wire_scan_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_frontend_check_wire_scan_LDADD = $(LIBS_OF_FRONTEND) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_activation_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_activation_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_affine_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_affine_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_attention_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_attention_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_bind_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_bind_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_element_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_element_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_fold_sizes_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_fold_sizes_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_gradient_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_gradient_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_hlo_text_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_hlo_text_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_hlo_verify_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_hlo_verify_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_hostile_text_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_hostile_text_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_loop_trips_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_loop_trips_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_pass_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_pass_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_passes_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_passes_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_pattern_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_pattern_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_qdq_fusion_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_qdq_fusion_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_quantized_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_quantized_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_same_values_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_same_values_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_softmax_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_softmax_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_hlo_check_value_range_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_hlo_check_value_range_LDADD = $(LIBS_OF_HLO) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_lower_check_divide_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_lower_check_divide_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_lower_check_kernels_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_lower_check_kernels_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_lower_check_lower_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_lower_check_lower_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_contents_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_contents_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_opened_file_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_opened_file_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_options_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_options_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_precompute_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_precompute_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_profile_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_profile_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_programs_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_programs_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_progress_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_progress_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_segments_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_segments_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_session_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_session_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_session_threads_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_session_threads_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_plugin_check_specialise_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_plugin_check_specialise_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_binding_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_binding_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_code_loader_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_code_loader_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_emulated_device_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_emulated_device_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_image_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_image_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_recorder_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_recorder_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_run_memory_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_run_memory_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_size_text_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_size_text_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_staging_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_staging_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_thread_pool_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_thread_pool_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_told_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_told_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_runtime_check_weight_pool_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_runtime_check_weight_pool_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_verify_check_compare_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_verify_check_compare_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_prog_locale_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_api_prog_locale_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_dynamic_prog_symbols_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_dynamic_prog_symbols_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_fuzz_bytes_prog_fuzz_bytes_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_fuzz_bytes_prog_fuzz_bytes_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_hlo_prog_run_pass_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_hlo_prog_run_pass_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_hostile_prog_hostile_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_hostile_prog_hostile_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_hostile_prog_images_CPPFLAGS = $(FLAGS_OF_CLIENTS) $(CHECK_CPPFLAGS)
tests_hostile_prog_images_LDADD = $(LIBS_OF_CLIENTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_target_prog_machine_objects_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_target_prog_machine_objects_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_api_module_device_backend_la_SOURCES = tests/api/module_device_backend.c
tests_api_module_device_backend_la_LDFLAGS = $(FLAGS_OF_MODULES)
tests_api_module_device_backend_la_LIBADD = $(LIBS_OF_MODULES)
tests_api_module_failing_malloc_la_SOURCES = tests/api/module_failing_malloc.c
tests_api_module_failing_malloc_la_LDFLAGS = $(FLAGS_OF_MODULES)
tests_api_module_failing_malloc_la_LIBADD = $(LIBS_OF_MODULES)
tests_api_module_faulty_backend_la_SOURCES = tests/api/module_faulty_backend.c
tests_api_module_faulty_backend_la_LDFLAGS = $(FLAGS_OF_MODULES)
tests_api_module_faulty_backend_la_LIBADD = $(LIBS_OF_MODULES)
tests_api_module_toy_backend_la_SOURCES = tests/api/module_toy_backend.c
tests_api_module_toy_backend_la_LDFLAGS = $(FLAGS_OF_MODULES)
tests_api_module_toy_backend_la_LIBADD = $(LIBS_OF_MODULES)
tests_conformance_module_apart_backend_la_SOURCES = tests/conformance/module_apart_backend.c
tests_conformance_module_apart_backend_la_LDFLAGS = $(FLAGS_OF_MODULES)
tests_conformance_module_apart_backend_la_LIBADD = $(LIBS_OF_MODULES)
tests_unit_backend_gpu_module_fake_cuda_la_SOURCES = tests/unit/backend_gpu/module_fake_cuda.c
tests_unit_backend_gpu_module_fake_cuda_la_LDFLAGS = $(FLAGS_OF_MODULES)
tests_unit_backend_gpu_module_fake_cuda_la_LIBADD = $(LIBS_OF_MODULES)
