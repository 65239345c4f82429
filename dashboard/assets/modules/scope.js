// What a key or a button acts on.

// From a view path to what it is about, by the names that forms use.
export function scopeOf(path) {
  const [plain, query] = String(path || "").replace(/^\/+/, "").split("?");
  const parts = plain.split("/").map(decodeURIComponent);
  const scope = {};
  if (["topics", "browse", "produce"].includes(parts[0]) && parts[1]) scope.topic = parts[1];
  if (parts[0] === "topics" && parts[2] === "partitions") scope.partition = parts[3];
  if (parts[0] === "brokers" && parts[1]) scope.broker = parts[1];
  if (parts[0] === "groups" && parts[1]) scope.group = parts[1];
  const wanted = new URLSearchParams(query || "");
  if (wanted.get("partition") && scope.topic) scope.partition = wanted.get("partition");
  return scope;
}

// What a key acts on: what has the focus, else what is under the pointer, else the selected
// row, else the view itself.
export function marked() {
  const focused = document.activeElement && document.activeElement.closest("main [data-path]");
  return focused || Array.from(document.querySelectorAll("main [data-path]:hover")).pop() || null;
}

let selectedPath = "";

export function select(path) {
  selectedPath = path;
}

export function forgetRow() {
  selectedPath = "";
}

export function scope() {
  const element = marked();
  // Nothing can be done to what is not there.
  const isMissing = document.querySelector("#missing:not([hidden])");
  const own = isMissing ? {} : scopeOf(window.location.pathname + window.location.search);
  if (element) return { ...own, ...scopeOf(element.dataset.path) };
  const selected = document.querySelector(".grid") && !isMissing ? scopeOf(selectedPath) : {};
  return { ...own, ...selected };
}
