// The address line: where the page is, and what it shows there.

export function navigate(path) {
  window.history.pushState({}, "", "/" + path);
  window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
  window.scrollTo(0, 0);
}

export function here() {
  return window.location.pathname.replace(/^\/+/, "").split("/").map(decodeURIComponent);
}

export function query(values) {
  const known = Object.entries(values).filter(([, value]) => value);
  return known.length ? "?" + new URLSearchParams(known) : "";
}

// The address line names what is shown, so that its link shows the same.
export function keepInUrl(values) {
  const url = new URL(window.location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  if (url.href !== window.location.href) {
    window.history.replaceState({}, "", url.pathname + url.search);
  }
}

// Internal topics and groups are listed where the address says so.
export function internalRows() {
  return new URLSearchParams(window.location.search).get("internal") === "yes" ? "yes" : "no";
}

export function isSame(one, other) {
  const names = Object.keys({ ...one, ...other });
  return names.every((name) => (one[name] || "") === (other[name] || ""));
}

// "2h" (ago) becomes the moment that it is now, so that it does not move on.
export function moment(words) {
  const ago = /^-?(\d+) ?([smhd])$/.exec(words);
  if (!ago) return words;
  const ms = Number(ago[1]) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[ago[2]];
  return new Date(Date.now() - ms).toISOString().replace(/\.\d+Z$/, "Z");
}

export function click(id) {
  const button = document.getElementById(id);
  if (button) button.click();
}
