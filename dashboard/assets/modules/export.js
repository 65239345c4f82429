// Saves the table of the view as a file.

import { internalRows, query } from "./address.js";
import { scopeOf } from "./scope.js";
import { toast } from "./toast.js";

export function exportTable(format) {
  const grid = document.querySelector(".grid");
  if (!grid) return toast("no table here to export");
  const kind = grid.id.replace(/^grid-/, "");
  const wanted = new URLSearchParams(window.location.search);
  const here_ = scopeOf(window.location.pathname);
  const limits = { scope: here_.topic || here_.group };
  for (const name of ["q", "sort", "cols", "at", "cluster"]) limits[name] = wanted.get(name);
  limits.internal = internalRows();
  const field = document.getElementById("filter-" + kind);
  if (field && field.value) limits.q = field.value;
  const link = document.createElement("a");
  link.href = "/export/" + kind + "." + format + query(limits);
  link.download = kind + "." + format;
  link.click();
  return toast("exported what the filter leaves as " + format.toUpperCase());
}
