// Pictures of cells (dashboard/components/heat_box.py), and words beside the pointer.

import { navigate } from "./address.js";

// Which cell is at a place.
function cellAt(plot, event) {
  const box = plot.getBoundingClientRect();
  const topics = plot.dataset.topics.split("\t");
  const brokers = plot.dataset.brokers.split("\t");
  const along = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
  const column = along((event.clientX - box.left) / box.width, topics.length);
  const row = along((event.clientY - box.top) / box.height, brokers.length);
  const words = plot.dataset.words.split("\t")[row * topics.length + column];
  return { topic: topics[column], broker: brokers[row], words };
}

// What is under the pointer, told beside it at once.
function tell(words, event) {
  let tip = document.getElementById("tip");
  if (!tip) {
    tip = document.createElement("div");
    tip.id = "tip";
    tip.setAttribute("aria-hidden", "true");
    document.body.appendChild(tip);
  }
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = words;
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  tip.style.translate = `${Math.max(left, 8)}px ${event.clientY + 16}px`;
}

document.addEventListener("pointermove", (event) => {
  const told = event.target.closest && event.target.closest("[data-words], [data-tip]");
  if (!told) {
    if (document.getElementById("tip")) tell("", event);
    return;
  }
  if (told.dataset.tip) return tell(told.dataset.tip, event);
  const cell = cellAt(told, event);
  return tell(`${cell.topic} on ${cell.broker}: ${cell.words || "nothing"}`, event);
});

document.addEventListener("click", (event) => {
  const plot = event.target.closest("[data-words]");
  const tip = document.getElementById("tip");
  if (tip) tip.hidden = true;
  const topic = plot ? cellAt(plot, event).topic : "(";
  if (!topic.startsWith("(")) navigate("topics/" + encodeURIComponent(topic));
});
