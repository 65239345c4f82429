// Which names of topics or groups a field offers: all of them while it holds one of them whole, so
// that another can be chosen, else those that hold what is typed.

export function namesOffered({ options, search, limit }) {
  const typed = search.trim().toLowerCase();
  const chosen = options.some((option) => option.value === search);
  const fits = chosen ? options : options.filter((it) => it.value.toLowerCase().includes(typed));
  return fits.slice(0, limit);
}
