# Written by m4/list-sources: do not edit.
man_pages = \
	doc/onnx-xla.1
man3_pages = \
	doc/onnx-xla.3 \
	doc/oxla_allocator.3 \
	doc/oxla_cancel.3 \
	doc/oxla_check.3 \
	doc/oxla_checking.3 \
	doc/oxla_code.3 \
	doc/oxla_compile.3 \
	doc/oxla_constant.3 \
	doc/oxla_dim.3 \
	doc/oxla_done_fn.3 \
	doc/oxla_error_code.3 \
	doc/oxla_error_free.3 \
	doc/oxla_error_message.3 \
	doc/oxla_error_node.3 \
	doc/oxla_error_subject.3 \
	doc/oxla_errors.3 \
	doc/oxla_event_destroy.3 \
	doc/oxla_event_wait.3 \
	doc/oxla_events.3 \
	doc/oxla_execute.3 \
	doc/oxla_finding_fn.3 \
	doc/oxla_free_output.3 \
	doc/oxla_get_output.3 \
	doc/oxla_get_output_at.3 \
	doc/oxla_initializer_count.3 \
	doc/oxla_input_count.3 \
	doc/oxla_input_dim_name.3 \
	doc/oxla_input_name.3 \
	doc/oxla_input_type.3 \
	doc/oxla_keep_inputs.3 \
	doc/oxla_load.3 \
	doc/oxla_load_memory.3 \
	doc/oxla_log_fn.3 \
	doc/oxla_log_level.3 \
	doc/oxla_metadata.3 \
	doc/oxla_model_destroy.3 \
	doc/oxla_models.3 \
	doc/oxla_onnx_versions.3 \
	doc/oxla_options.3 \
	doc/oxla_output_count.3 \
	doc/oxla_output_name.3 \
	doc/oxla_output_type.3 \
	doc/oxla_outputs.3 \
	doc/oxla_profile.3 \
	doc/oxla_profile_format.3 \
	doc/oxla_profiles.3 \
	doc/oxla_run_create.3 \
	doc/oxla_run_destroy.3 \
	doc/oxla_runs.3 \
	doc/oxla_save.3 \
	doc/oxla_set_input.3 \
	doc/oxla_set_input_at.3 \
	doc/oxla_set_max_seconds.3 \
	doc/oxla_set_output.3 \
	doc/oxla_set_output_at.3 \
	doc/oxla_set_seed.3 \
	doc/oxla_start.3 \
	doc/oxla_subject.3 \
	doc/oxla_survey.3 \
	doc/oxla_take_output.3 \
	doc/oxla_tensor.3 \
	doc/oxla_tensors.3 \
	doc/oxla_text_free.3 \
	doc/oxla_type.3 \
	doc/oxla_version.3 \
	doc/oxla_versions.3
doc_files = \
	doc/benchmarks-1t.svg \
	doc/benchmarks-2t.svg \
	doc/benchmarks.md \
	doc/convolutions-mobilenet-v2.svg \
	doc/convolutions-resnet50.svg \
	doc/make-man \
	doc/operators.md
