// A field tells Dash what was typed a moment after the key. A click or Enter may come before that
// on a busy machine, and what is asked then would be about a value without its last letters. So
// before each of them the fields that were typed into tell what they hold.

const TOLD = ["TextInput", "Textarea", "Autocomplete", "NumberInput"]
  .map((it) => `.mantine-${it}-input[id]`)
  .join();
const typedInto = new Set();

document.addEventListener("input", ({ target }) => {
  if (target.matches(TOLD)) typedInto.add(target);
}, true);
document.addEventListener("click", tell, true);
document.addEventListener("keydown", ({ key }) => {
  if (key === "Enter") tell();
}, true);

function tell() {
  for (const field of typedInto) {
    const id = field.id.startsWith("{") ? JSON.parse(field.id) : field.id;
    if (field.isConnected) window.dash_clientside.set_props(id, { value: valueOf(field) });
  }
  typedInto.clear();
}

function valueOf({ value, classList }) {
  const isNumber = classList.contains("mantine-NumberInput-input") && value !== "";
  return isNumber && Number.isFinite(Number(value)) ? Number(value) : value;
}
