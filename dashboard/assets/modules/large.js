// What is too large for one message of the page's WebSocket is told, and not sent: the server would
// close the connection, and nobody would hear why.
import { toast, WHY_MS } from "./toast.js";

const MIB = 1 << 20;
// dashboard/app.py takes 16 MiB.
const MESSAGE_BYTES_MAX = 15 * MIB;
const post = MessagePort.prototype.postMessage;

function characters(value) {
  if (typeof value === "string") return value.length;
  if (!value || typeof value !== "object") return 0;
  return Object.values(value).reduce((sum, part) => sum + characters(part), 0);
}

function bytesOf(payload) {
  // To count bytes costs more than most callbacks do.
  return characters(payload) < MIB ? 0 : new Blob([JSON.stringify(payload)]).size;
}

MessagePort.prototype.postMessage = function (message, ...rest) {
  const isAsked = message && message.type === "callback_request";
  const bytes = isAsked ? bytesOf(message.payload) : 0;
  if (bytes <= MESSAGE_BYTES_MAX) return post.call(this, message, ...rest);
  const { rendererId, requestId } = message;
  toast(`✖ nothing was sent: it has ${Math.ceil(bytes / MIB)} MiB, and a page sends at most ` +
    `${MESSAGE_BYTES_MAX / MIB}. The commands take larger files`, WHY_MS);
  const payload = { status: "prevent_update" };
  const data = { type: "callback_response", rendererId, requestId, payload };
  window.setTimeout(() => this.onmessage && this.onmessage({ data }));
  return undefined;
};
