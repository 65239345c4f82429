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

export function copyLink() {
  if (!navigator.clipboard) return toast("this browser lets no page copy; the link is above");
  return navigator.clipboard.writeText(window.location.href).then(
    () => toast("link copied"),
    () => toast("the browser refused to copy; the link is in its address line")
  );
}
