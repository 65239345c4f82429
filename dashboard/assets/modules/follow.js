// Following a topic: one WebSocket, which owns this tab's reader at the server

import { keepInUrl } from "./address.js";

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

function followTopic(topic, wanted) {
  asked = wanted;
  if (topic && topic === followed) return ask();
  stop();
  if (topic) open(topic, false);
  return undefined;
}

// Another view has come.
export function leave(pathname) {
  const [view, topic] = (pathname || "/").split("/").slice(1).map(decodeURIComponent);
  if (view !== "browse" || topic !== followed) stop();
}

export const toggleFollow = (follow, read, isOn) =>
  window.dash_clientside.callback_context.triggered_id === "browse-follow" && !isOn;

// Answers the words of the button: of a callback without an answer Dash makes no first call in a
// view that came by a link.
export function follow(isOn, partition, wanted, topic) {
  followTopic(isOn && topic, { partition, q: wanted });
  keepInUrl(isOn ? { follow: "yes", partition, q: wanted } : { follow: "" });
  return isOn ? "Stop following" : "Follow";
}
