// Following a topic: one WebSocket, which owns this tab's reader at the server (dashboard/tail.py).
// It goes with the tab, the view and the button; a changed field is said over the same one.
(function () {
  "use strict";

  const AGAIN_MS = 1000;
  const PAUSE_MS = 150;
  let socket = null;
  let followed = "";
  let asked = {};
  let askTimer = 0;
  let againTimer = 0;

  function addressOf(topic) {
    const cluster = document.documentElement.dataset.cluster;
    const base = cluster ? "/@" + encodeURIComponent(cluster) : "";
    const origin = window.location.origin.replace(/^http/, "ws");
    return `${origin}${base}/follow/${encodeURIComponent(topic)}`;
  }

  function stop() {
    window.clearTimeout(askTimer);
    window.clearTimeout(againTimer);
    followed = "";
    if (socket) socket.close();
    socket = null;
  }

  function show({ data }) {
    const told = JSON.parse(data);
    window.dash_clientside.set_props("browse-result", { children: told.children });
    if (!told.is_over) return;
    stop();
    window.dash_clientside.set_props("browse-follows", { data: false });
  }

  function open(topic, again) {
    const mine = new WebSocket(addressOf(topic));
    socket = mine;
    followed = topic;
    const isMine = () => socket === mine;
    mine.onopen = () => mine.send(JSON.stringify({ ...asked, again }));
    mine.onmessage = (event) => isMine() && show(event);
    mine.onclose = () => {
      if (isMine()) againTimer = window.setTimeout(() => open(topic, true), AGAIN_MS);
    };
  }

  // What is typed is told once it pauses.
  function ask() {
    window.clearTimeout(askTimer);
    askTimer = window.setTimeout(() => {
      if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(asked));
    }, PAUSE_MS);
  }

  function follow(topic, wanted) {
    asked = wanted;
    if (topic && topic === followed) return ask();
    stop();
    if (topic) open(topic, false);
    return undefined;
  }

  // Another view has come.
  function leave(pathname) {
    const [view, topic] = (pathname || "/").split("/").slice(1).map(decodeURIComponent);
    if (view !== "browse" || topic !== followed) stop();
  }

  window.partiscopeFollow = { follow, leave };
})();
