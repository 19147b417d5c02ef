#!/usr/bin/env bash
# Builds the wheel and tests it in a fresh virtual environment: python/test.sh [options of pytest].
#
# F2_PYTHON  the Python to test with [python3]. Where it has torch, transformers or lm_eval, they are
#            used; the tests that need what is not there are skipped, with a remark.
# F2_TORCH   1 installs torch and transformers, which takes minutes.
# F2_PROFILE how the wheel is built [dev]; F2_PROGRAM an f2 that is built already.
set -euo pipefail
cd "$(dirname "$0")"
python=${F2_PYTHON:-python3}
work=$(cd .. && pwd)/target/wheel
venv=$work/venv
rm -rf "$work/dist" "$venv"
mkdir -p "$work"
remark() { echo "remark: $*" >&2; }

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { remark "Python 3.9 or newer is needed for the wheel"; exit 4; }
"$python" -m venv "$venv"
bin=$venv/bin
[ -d "$bin" ] || bin=$venv/Scripts
pip() { "$bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
# Without them there is nothing to build and test with, which is no fault of the wheel.
if ! pip install 'maturin>=1.8,<2' numpy pytest; then
    remark "maturin, numpy and pytest cannot be installed; the wheel is not tested here"
    exit 0
fi
pip install pandas nltk || remark "pandas or nltk cannot be installed; what needs them is not tested"

if [ "${F2_TORCH:-}" = 1 ]; then
    pip install torch transformers || remark "torch and transformers cannot be installed"
elif "$python" -c 'import torch' 2>/dev/null; then
    # Last on the path, so that what was just installed comes first.
    "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
        >"$("$bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/borrowed.pth"
fi
for module in torch transformers lm_eval; do
    "$bin/python" -c "import $module" 2>/dev/null || remark "$module is not installed; what needs it is not tested"
done

PATH=$bin:$PATH F2_PROFILE=${F2_PROFILE:-dev} ./build.sh "$work/dist" --interpreter "$bin/python" --quiet
pip install --force-reinstall --no-deps "$work"/dist/*.whl

# Elsewhere than in the source tree, so that the installed package is what is tested.
cd "$work"
package=$("$bin/python" -c 'import f2_softmax, pathlib; print(pathlib.Path(f2_softmax.__file__).parent)')
"$bin/python" -m pytest -q -p no:cacheprovider --rootdir "$OLDPWD" --durations 5 \
    --doctest-modules --doctest-ignore-import-errors "$package" "$OLDPWD/tests" "$@"
