// Words that stand for a moment at the edge of the page.

const TOAST_MS = 2500;
// Of an explanation.
export const WHY_MS = 7000;
let timer = 0;

export function toast(words, shownMs) {
  const place = document.getElementById("note");
  if (!place) return;
  place.textContent = words;
  place.classList.add("shown");
  window.clearTimeout(timer);
  timer = window.setTimeout(() => place.classList.remove("shown"), shownMs || TOAST_MS);
}

// The whole text of the next block behind a button.
export function copyNext(button) {
  let block = button.parentElement;
  while (block && block.tagName !== "PRE") block = block.nextElementSibling;
  if (!block) return undefined;
  if (!navigator.clipboard) return toast("this browser lets no page copy");
  return navigator.clipboard.writeText(block.textContent).then(
    () => toast("copied"),
    () => toast("the browser refused to copy")
  );
}

export function copyLink() {
  if (!navigator.clipboard) return toast("this browser lets no page copy; the link is above");
  return navigator.clipboard.writeText(window.location.href).then(
    () => toast("link copied"),
    () => toast("the browser refused to copy; the link is in its address line")
  );
}
