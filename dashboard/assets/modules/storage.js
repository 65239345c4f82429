// What this browser keeps for the page. One that denies it (cookies are blocked, no room is left)
// keeps it until the page goes.

function storage(name) {
  const meanwhile = new Map();
  const orElse = (act, instead) => {
    try {
      return act(window[name]);
    } catch {
      return instead();
    }
  };
  return {
    get(key) {
      if (meanwhile.has(key)) return meanwhile.get(key);
      return orElse((store) => store.getItem(key), () => null);
    },
    set(key, value) {
      meanwhile.delete(key);
      orElse((store) => store.setItem(key, value), () => meanwhile.set(key, String(value)));
    },
    remove(key) {
      meanwhile.delete(key);
      orElse((store) => store.removeItem(key), () => null);
    },
  };
}

export const inBrowser = storage("localStorage");
export const inTab = storage("sessionStorage");
