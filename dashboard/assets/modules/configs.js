// The view of configs: its address names what is looked for, and with whom it is compared.

import { keepInUrl } from "./address.js";

export function keepConfigs(wanted, beside) {
  keepInUrl({ q: wanted, with: beside });
  return window.dash_clientside.no_update;
}
