// What single views need of the browser.

import { keepInUrl, navigate } from "./address.js";
import { leave } from "./follow.js";
import { forgetMarks } from "./marks.js";
import { forgetRow } from "./scope.js";
import { greet } from "./tour.js";

const none = () => window.dash_clientside.no_update;
const FILE_KIB_MAX = 1024;

export function markNav(pathname) {
  leave(pathname);
  forgetMarks();
  forgetRow();
  const view = (pathname || "/").split("/")[1] || "overview";
  for (const link of document.querySelectorAll(".nav-link")) {
    const isHere = link.id === "nav-" + view;
    link.setAttribute("aria-current", isHere ? "page" : "false");
    // On a phone not all of them are in sight.
    const nav = link.parentElement;
    if (isHere) nav.scrollLeft = link.offsetLeft - nav.clientWidth / 2;
  }
  document.title = view + " · partiscope";
  greet(pathname);
  return view;
}

export function openPath(path) {
  if (path) navigate(path);
}

export function followRedirect(way) {
  if (way && window.location.pathname === way.from) navigate(way.to);
}

export function lossChosen(loss) {
  if (!loss || !window.location.pathname.startsWith("/what-if")) return none();
  const [kind, value] = loss.split("=");
  keepInUrl({ broker: "", rack: "", [kind]: value });
  return none();
}

export function measureChosen(measure) {
  if (measure && window.location.pathname.startsWith("/map")) keepInUrl({ measure });
}

// A file's lines go to the server with the click on "send"; more is for the command line.
export function fileChosen(contents, none, name) {
  const cause = window.dash_clientside.callback_context.triggered_id;
  if (cause !== "produce-file" || !contents) return [null, "no file: key and value are sent", true];
  const kib = Math.ceil((contents.length * 3) / 4 / 1024);
  if (kib > FILE_KIB_MAX) {
    return [null, `✖ ${name} has ${kib.toLocaleString("en")} KiB, a page sends at most ` +
      `${FILE_KIB_MAX.toLocaleString("en")}: partiscope produce --file takes it`, true];
  }
  const words = `${name}, ${kib} KiB: its lines are sent, not key, value and count`;
  return [{ name, contents }, words, false];
}
