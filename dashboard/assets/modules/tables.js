// The library of tables is read when a table is wanted, or when the first view stands: it is the
// largest script of the page, and many views have no table.

const IDLE_MS_MAX = 4000;
const { address, now } = window.partiscopeTables;
let reading = null;

function read() {
  reading = reading || new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => {
      const found = window.dash_ag_grid;
      // The name stays that of the stand-in: a table that is drawn would be made anew.
      window.dash_ag_grid = { ...found, AgGrid: Soon };
      done({ default: found.AgGrid });
    };
    script.onerror = () => {
      reading = null;
      failed(new Error(`tables cannot be shown: ${address} did not come; load the page again`));
    };
    document.head.appendChild(script);
  });
  return reading;
}

const { createElement, lazy, Suspense } = window.React;
const Table = lazy(read);
const Soon = (props) => createElement(Suspense, { fallback: null }, createElement(Table, props));
window.dash_ag_grid = { AgGrid: Soon };

if (now) read();
else {
  window.addEventListener("load", () => {
    const idle = window.requestIdleCallback || ((action) => window.setTimeout(action, 500));
    idle(read, { timeout: IDLE_MS_MAX });
  });
}
