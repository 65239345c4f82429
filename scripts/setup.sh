#!/usr/bin/env bash
# Set-up, idempotent and non-interactive: uv, the locked environment, Java, Spark's Kafka
# connector; with `dev` also the developers' tools, with `test` also Chromium, Maven, real Kafka
# and the Go client of the tests. What cannot be installed here is named, with what to type.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-run}
say() { printf '%s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

may_install() { [ "$(id -u)" = 0 ] || { have sudo && sudo -n true 2>/dev/null; }; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

# install_package WHAT APT DNF APK BREW: by the system's package manager, where it may.
install_package() {
  local what=$1 apt=$2 dnf=$3 apk=$4 brew=$5
  if have brew; then
    say "setup: installing $what (brew install $brew)"
    brew install "$brew" >&2 && return 0
  elif may_install; then
    if have apt-get; then
      say "setup: installing $what (apt-get install $apt)"
      as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || true
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$apt" >/dev/null && return 0
    elif have dnf; then
      as_root dnf install -y -q "$dnf" >&2 && return 0
    elif have apk; then
      as_root apk add -q "$apk" >&2 && return 0
    fi
  fi
  say "setup: $what is missing and cannot be installed from here (no root). Type one of these,"
  say "then the same make again:"
  say "    sudo apt-get install -y $apt    (Debian, Ubuntu)"
  say "    sudo dnf install -y $dnf    (Fedora, RHEL)"
  say "    brew install $brew    (macOS)"
  return 1
}

find_uv() {
  if have uv; then echo uv; elif [ -x .cache/uv/bin/uv ]; then echo .cache/uv/bin/uv; fi
}

download() {
  if have curl; then curl -LsSf "$1"; elif have wget; then wget -qO- "$1"; else return 1; fi
}

ensure_uv() {
  [ -n "$(find_uv)" ] && return
  say "setup: installing uv into .cache/uv"
  if have python3 && python3 -m venv .cache/uv 2>/dev/null \
    && .cache/uv/bin/python -m pip install -q uv >&2; then
    return
  fi
  rm -rf .cache/uv
  if download https://astral.sh/uv/install.sh \
    | env UV_INSTALL_DIR="$PWD/.cache/uv/bin" UV_NO_MODIFY_PATH=1 sh >&2 \
    && [ -x .cache/uv/bin/uv ]; then
    return
  fi
  say "setup: uv is missing and could not be installed into .cache/uv: that takes python3 with its"
  say "venv module, or curl or wget, and the network. Type one of these, then the same make again:"
  say "    sudo apt-get install -y python3-venv            (Debian, Ubuntu)"
  say "    curl -LsSf https://astral.sh/uv/install.sh | sh    (anywhere)"
  say "    brew install uv                                 (macOS)"
  exit 1
}

ensure_environment() {
  local uv groups=(--no-dev)
  # As pip does: a company's proxy has a certificate that only the system knows.
  if [ -s /etc/ssl/certs/ca-certificates.crt ] || [ -s /etc/pki/tls/certs/ca-bundle.crt ]; then
    export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1}
  fi
  uv=$(find_uv)
  # Developers' tools, and extras, once installed stay installed: `make up` after `make test`
  # changes nothing.
  if [ "$purpose" != run ] || [ -e .venv/bin/pytest ]; then groups=(); fi
  compgen -G ".venv/lib/python*/site-packages/gssapi" >/dev/null && groups+=(--extra kerberos)
  compgen -G ".venv/lib/python*/site-packages/pandas" >/dev/null && groups+=(--extra executors)
  [ -x .venv/bin/python ] || say "setup: installing what is locked into .venv (minutes, once)"
  "$uv" sync --locked --quiet "${groups[@]}"
  # Bytecode once per lock, also where Python may not write it by itself: every process of the
  # product then starts in about half the time.
  if [ uv.lock -nt .venv/.bytecode ]; then
    .venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 || true
    touch .venv/.bytecode
  fi
}

ensure_java() {
  if .venv/bin/python -m spark_metrics.job.java --quiet; then return; fi
  if ! install_package "Java 17 or 21" openjdk-17-jre-headless java-17-openjdk-headless \
    openjdk17-jre-headless openjdk@17; then
    say "or set JAVA_HOME to a Java 17 or 21 that is elsewhere."
    return 1
  fi
  .venv/bin/python -m spark_metrics.job.java
}

ensure_connector() { .venv/bin/python -m spark_metrics.job.set_up; }

ensure_browser() {
  local name
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if have "$name"; then return; fi
  done
  if { have brew || may_install; } && install_package Chromium chromium chromium chromium chromium
  then return; fi
  say "setup: fetching a Chromium of the tests' own (playwright install chromium)"
  .venv/bin/python -m playwright install chromium >&2
}

# Playwright's own Node needs a library that a small Debian lacks.
ensure_driver() {
  .venv/bin/python -m playwright --version >/dev/null 2>&1 && return
  install_package "libatomic (for Playwright)" libatomic1 libatomic libatomic libatomic
}

# What only tests need, and can do without: each says itself what is skipped then.
ensure_peers() {
  have mvn || install_package "Maven (for real Kafka as oracle)" maven maven maven maven || true
  .venv/bin/python -m tests.support.peers
}

ensure_uv
ensure_environment
[ "$purpose" = dev ] && exit
ensure_java
if [ "$purpose" = test ]; then
  ensure_driver
  ensure_browser
  ensure_peers &
fi
ensure_connector
wait
