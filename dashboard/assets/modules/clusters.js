// Several clusters in one page: every address of this tab carries the cluster that it is about.

const cluster = document.documentElement.dataset.cluster;
function carrying(href, name) {
  const url = new URL(href, window.location.href);
  if (name) url.searchParams.set("cluster", name);
  else if (!url.searchParams.has("cluster")) url.searchParams.set("cluster", cluster);
  return url.pathname + url.search + url.hash;
}

// Links as the browser itself follows them: in another tab, downloads, another cluster.
function complete(event) {
  const link = event.target.closest && event.target.closest('a[href^="/"]');
  if (!link) return;
  const name = link.classList.contains("cluster-choice") ? link.dataset.name : "";
  const here = window.location.pathname + window.location.search;
  link.setAttribute("href", carrying(name ? here : link.getAttribute("href"), name));
}
if (cluster) {
  for (const method of ["pushState", "replaceState"]) {
    const plain = window.history[method].bind(window.history);
    window.history[method] = (state, title, href) =>
      plain(state, title, href === undefined || href === null ? href : carrying(String(href)));
  }
  window.history.replaceState(window.history.state, "", window.location.href);
  for (const kind of ["pointerdown", "focusin", "click"]) {
    document.addEventListener(kind, complete, true);
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "c" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const switcher = document.getElementById("clusters");
    if (!switcher) return;
    switcher.open = !switcher.open;
    if (switcher.open) switcher.querySelector("a:not([aria-current])").focus();
  });
}
