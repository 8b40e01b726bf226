# find_tools.sh - read by the scripts here: sets data, python and work, a temporary folder; exits with status 77 if a tool is missing.
data=${ONNX_XLA_DATA-$here/../../.deps}
ONNX_XLA=$(realpath "${ONNX_XLA-./onnx-xla}")
export ONNX_XLA
python=$data/python/bin/python3
[ -x "$python" ] || python=python3
for tool in "$python" nm "${CC-cc}"; do
  command -v "${tool%% *}" >/dev/null || { echo "there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
