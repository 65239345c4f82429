// Dragging a replica of a plan to another broker of its row. Nothing is moved here: an entry is
// written into the field for edits by hand, and the server draws what it makes of it.

const FIELD = "plan-entries";
let chip = null;

const placeOf = (event) => {
  const place = event.target.closest && event.target.closest(".replica-place");
  if (!chip || !place || place.closest("tr") !== chip.closest("tr")) return null;
  return place.querySelector(".replica-chip") ? null : place;
};

const unmark = () =>
  document.querySelectorAll(".may-drop").forEach((place) => place.classList.remove("may-drop"));

// Kafka's JSON as entries, one a line; what is none stays, and is refused with its reason.
const lines = (text) => {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text)
      .partitions.map((it) => `${it.topic}-${it.partition}: ${it.replicas.join(",")}`)
      .join("\n");
  } catch {
    return text;
  }
};

// Other entries stay as they were typed.
const merged = (text, partition, entry) => {
  const others = lines(text)
    .split(/[;\n]/)
    .map((line) => line.trim())
    .filter((line) => line && line.split(/[:=]/)[0].trim() !== partition);
  return [...others, entry].join("\n");
};

document.addEventListener("dragstart", (event) => {
  chip = event.target.closest && event.target.closest(".replica-chip");
  if (!chip) return;
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", chip.title);
});

document.addEventListener("dragover", (event) => {
  const place = placeOf(event);
  unmark();
  if (!place) return;
  event.preventDefault();
  place.classList.add("may-drop");
});

document.addEventListener("drop", (event) => {
  const place = placeOf(event);
  unmark();
  if (!place) return;
  event.preventDefault();
  const { partition, replicas } = place.closest("tr").dataset;
  const source = chip.closest(".replica-place").dataset.broker;
  const after = replicas.split(",").map((id) => (id === source ? place.dataset.broker : id));
  const typed = document.getElementById(FIELD);
  const value = merged(typed ? typed.value : "", partition, `${partition}: ${after.join(",")}`);
  window.dash_clientside.set_props(FIELD, { value });
});

document.addEventListener("dragend", () => {
  chip = null;
  unmark();
});
