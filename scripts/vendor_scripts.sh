#!/bin/sh
# Brings the scripts that the page takes from npm anew, as published: their bundles are not part of
# any Python package. Run it when the lock takes another plotly (a test compares the versions).
set -eu
cd "$(dirname "$0")/.."
vendor="$PWD/dashboard/assets/vendor"
plotly=$(.venv/bin/python -c "from plotly.offline import get_plotlyjs_version as v; print(v())")
take() { # package@version, its file, our name
    folder=$(mktemp -d)
    (cd "$folder" && tar xzf "$(npm pack --silent "$1")")
    cp "$folder/package/$2" "$vendor/$3"
    cp "$folder/package/LICENSE" "$vendor/${3%%.*}.LICENSE"
    rm -r "$folder"
}
take "plotly.js-cartesian-dist-min@$plotly" plotly-cartesian.min.js plotly-cartesian.min.js
take regenerator-runtime@0.14.1 runtime.js regenerator-runtime.js
