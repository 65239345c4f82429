// Reading and following a topic: one WebSocket, which owns this tab's reader at the server

import { keepInUrl } from "./address.js";

const AGAIN_MS = 1000;
const PAUSE_MS = 150;
const HIDDEN = { display: "none" };
let socket = null;
let topicOf = "";
let asked = {};
let askTimer = 0;
let againTimer = 0;

function addressOf(topic) {
  const cluster = document.documentElement.dataset.cluster;
  const base = cluster ? "/@" + encodeURIComponent(cluster) : "";
  const origin = window.location.origin.replace(/^http/, "ws");
  return `${origin}${base}/follow/${encodeURIComponent(topic)}`;
}

function set(id, props) {
  window.dash_clientside.set_props(id, props);
}

function stop() {
  window.clearTimeout(askTimer);
  window.clearTimeout(againTimer);
  topicOf = "";
  if (socket) socket.close();
  socket = null;
}

function show({ data }) {
  const told = JSON.parse(data);
  set("browse-result", { children: told.children });
  set("browse-more", { style: told.has_more ? {} : HIDDEN });
  set("browse-back", { style: told.has_previous ? {} : HIDDEN });
  set("browse-stop", { style: told.is_running ? {} : HIDDEN });
  if (!told.is_over) return;
  stop();
  set("browse-follows", { data: false });
}

function open(topic, again) {
  const mine = new WebSocket(addressOf(topic));
  socket = mine;
  topicOf = topic;
  const isMine = () => socket === mine;
  mine.onopen = () => mine.send(JSON.stringify({ ...asked, again }));
  mine.onmessage = (event) => isMine() && show(event);
  mine.onclose = () => {
    if (!isMine()) return;
    if (asked.do === "follow") {
      againTimer = window.setTimeout(() => open(topic, true), AGAIN_MS);
    } else {
      socket = null;
      set("browse-stop", { style: HIDDEN });
      set("browse-more", { style: HIDDEN });
      set("browse-back", { style: HIDDEN });
    }
  };
}

function send(words) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(words));
}

function ask(topic, words, pauseMs = 0) {
  asked = words;
  window.clearTimeout(askTimer);
  if (topic !== topicOf || !socket) {
    stop();
    open(topic, false);
  } else {
    askTimer = window.setTimeout(() => send(asked), pauseMs);
  }
}

// Another view has come.
export function leave(pathname) {
  const [view, topic] = (pathname || "/").split("/").slice(1).map(decodeURIComponent);
  if (view !== "browse" || topic !== topicOf) stop();
}

export const toggleFollow = (follow, read, isOn) =>
  window.dash_clientside.callback_context.triggered_id === "browse-follow" && !isOn;

// What the fields say, by the names that the address has for them.
function queryOf([partition, start, at, until, q, regex, key, header, path, cel, limit, kf, vf]) {
  const offset = start === "offset" ? at : "";
  const since = { earliest: "earliest", time: at }[start] || "";
  return { partition, offset, since, until, q, regex, key, header, path, cel, limit, kf, vf };
}

// For the address, which leaves out what is detected.
function inAddress(query) {
  const named = (format) => (format === "auto" ? "" : format);
  return { ...query, kf: named(query.kf), vf: named(query.vf) };
}

// Answers the words of the button: of a callback without an answer Dash makes no first call in a
// view that came by a link.
export function follow(isOn, read, more, back, stopped, ...values) {
  const topic = values.pop();
  const triggered = window.dash_clientside.callback_context.triggered || [];
  const by = new Set(triggered.map(({ prop_id: name }) => name.split(".")[0]));
  const query = queryOf(values);
  if (isOn) {
    ask(topic, { do: "follow", query }, PAUSE_MS);
    keepInUrl({ ...inAddress(query), follow: "yes" });
    set("browse-more", { style: HIDDEN });
    set("browse-back", { style: HIDDEN });
  } else if (by.has("browse-stop")) {
    send({ do: "stop" });
  } else if (by.has("browse-more")) {
    ask(topic, { do: "more", query });
  } else if (by.has("browse-back")) {
    ask(topic, { do: "back", query });
  } else if (by.has("browse-read") || topic !== topicOf) {
    ask(topic, { do: "read", query });
    keepInUrl({ ...inAddress(query), follow: "" });
  } else if (by.has("browse-follows")) {
    stop();
    keepInUrl({ follow: "" });
  }
  return isOn ? "Stop following" : "Follow";
}
