// Light or dark: by choice, else as the system has it.

function systemScheme() {
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function paint(scheme) {
  document.documentElement.dataset.scheme = scheme;
  document.documentElement.dataset.agThemeMode = scheme;
  // Charts that come with the page are drawn in these colours.
  document.cookie = `scheme=${scheme}; path=/; SameSite=Lax`;
}

paint(document.documentElement.dataset.scheme || systemScheme());

export const switchScheme = (clicks, scheme) =>
  ((scheme || systemScheme()) === "dark" ? "light" : "dark");

export function applyScheme(scheme, before) {
  const wanted = scheme || systemScheme();
  paint(wanted);
  return [wanted, wanted === before ? window.dash_clientside.no_update : wanted];
}
