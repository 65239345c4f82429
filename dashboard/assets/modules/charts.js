// The library of charts is read once the page has been painted and stands idle: to run it takes the
// page's one thread 0.4 s, in which the page would answer nothing. Whoever draws a chart asks for
// `window.Plotly`, and waits where that is a promise; its place is kept free meanwhile.

const IDLE_MS_MAX = 700;
let library = null;
let reading = null;

const frame = () => new Promise((done) => {
  // A page that nobody sees has no frames.
  window.setTimeout(done, IDLE_MS_MAX);
  window.requestAnimationFrame(done);
});
const idle = () => new Promise((done) => {
  if (window.requestIdleCallback) window.requestIdleCallback(done, { timeout: IDLE_MS_MAX });
  else window.setTimeout(done, IDLE_MS_MAX / 2);
});

function read() {
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = window._dashPlotlyJSURL;
    script.onload = () => done(library);
    script.onerror = () => {
      reading = null;
      failed(new Error(`charts cannot be shown: ${script.src} did not come; load the page again`));
    };
    document.head.appendChild(script);
  });
}

async function readSoon() {
  // The first frame may still be drawn, the second comes after it.
  await frame();
  await frame();
  await idle();
  return read();
}

Object.defineProperty(window, "Plotly", {
  configurable: true,
  get: () => library || (reading = reading || readSoon()),
  set: (found) => { library = found; },
});
