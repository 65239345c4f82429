// A field tells Dash what was typed a moment after the key. A click or Enter may come before that
// on a busy machine, and what is asked then would be about a value without its last letters. So
// before each of them the field that was typed into last tells what it holds.

const TOLD = ["TextInput", "Textarea", "Autocomplete", "NumberInput"]
  .map((it) => `.mantine-${it}-input[id]`)
  .join();
let typedInto = null;

document.addEventListener("input", ({ target }) => {
  if (target.matches(TOLD)) typedInto = target;
}, true);
document.addEventListener("click", tell, true);
document.addEventListener("keydown", ({ key }) => {
  if (key === "Enter") tell();
}, true);

function tell() {
  const field = typedInto;
  typedInto = null;
  if (!field || !field.isConnected) return;
  const id = field.id.startsWith("{") ? JSON.parse(field.id) : field.id;
  window.dash_clientside.set_props(id, { value: valueOf(field) });
}

function valueOf({ value, classList }) {
  const isNumber = classList.contains("mantine-NumberInput-input") && value !== "";
  return isNumber && Number.isFinite(Number(value)) ? Number(value) : value;
}
