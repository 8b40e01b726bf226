# scratch.sh - read by the tests of build variants: another build of the sources, with the options of this one and more.
#
#   . scratch.sh
#   begin NAME [FLAG...]     a fresh folder, configured; ends the test with 77 where it cannot be tried; the folder is $scratch
#   run WHAT COMMAND...      runs it there with its output in a file, which is shown if it fails, and the test ends
#
# These tests take minutes each: only make check-full runs them.
if [ -z "${ONNX_XLA_FULL-}" ]; then
  echo "takes minutes: make check-full runs it"
  exit 77
fi
: "${top_srcdir:?}" "${top_builddir:?}" "${CK_DEFAULT_TIMEOUT:=120}"
export CK_DEFAULT_TIMEOUT
# What belongs to the make that runs this test.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES ONNX_XLA ONNX_XLA_SANITIZERS ONNX_XLA_FULL

run() {
  what=$1
  shift
  echo "== $what"
  (cd "$scratch" && "$@") >"$scratch/$log.log" 2>&1 </dev/null && return 0
  echo "FAIL: $what: exit status $?; the last lines:"
  tail -n 60 "$scratch/$log.log"
  exit 1
}

# The build's own options first: where LLVM is, the compiler.
configure_again() {
  eval "set -- $("$top_builddir/config.status" --config) \"\$@\""
  "$top_srcdir/configure" "$@"
}

begin() {
  name=$1 log=scratch
  shift
  if [ -f "$top_srcdir/config.status" ]; then
    echo "the sources are configured in their own folder, so that no other build of them can be made"
    exit 77
  fi
  scratch=$top_builddir/tests/build/$name.scratch
  # What distcheck leaves behind is read-only.
  chmod -R u+w "$scratch" 2>/dev/null || true
  rm -rf "$scratch"
  mkdir -p "$scratch"
  scratch=$(cd "$scratch" && pwd)
  trap 'rc=$?; [ $rc != 0 ] || { chmod -R u+w "$scratch"; rm -rf "$scratch"; }' EXIT
  run "configure $*" configure_again "$@"
}

# calls PATTERN: whether the version of the library that this build calls matches.
calls() { "$scratch/onnx-xla" --version | grep -E "^libraries .*($1)"; }

# Some of ONNX's own cases with convolutions and products, and a real model where there is one; on both backends.
run_models() {
  cases=$ONNX_XLA_DATA/onnx/backend/test/data/node
  if [ ! -d "$cases" ]; then
    echo "no ONNX test cases in $ONNX_XLA_DATA (tests/fetch-data gets them): no model was run"
    return 0
  fi
  for backend in cpu ref; do
    run "ONNX's cases on $backend" ./onnx-xla test --backend $backend "$cases"/test_basic_conv_* "$cases"/test_gemm_* \
      "$cases"/test_matmul_* "$cases"/test_convtranspose "$cases"/test_lstm_defaults "$cases"/test_softmax_*
  done
  model=$ONNX_XLA_DATA/rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx
  if [ -f "$model" ]; then
    run "a real model" ./onnx-xla run "$model" --input x="$(picture)"
  fi
}

# An input for that model: its header, then zeros.
picture() {
  file=$scratch/picture.npy
  text="{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 48, 192), }"
  { printf '\223NUMPY\1\0\166\0%-117s\n' "$text"; head -c $((3 * 48 * 192 * 4)) /dev/zero; } >"$file"
  echo "$file"
}
