// What this browser keeps for the page. One that denies it (cookies are blocked, no room is left)
// keeps it until the page goes.

function storage(name) {
  const meanwhile = new Map();
  const trying = (act) => {
    try {
      return act(window[name]);
    } catch {
      return undefined;
    }
  };
  return {
    get(key) {
      const kept = trying((store) => store.getItem(key));
      return kept ?? meanwhile.get(key) ?? null;
    },
    set(key, value) {
      meanwhile.set(key, String(value));
      trying((store) => store.setItem(key, value));
    },
    remove(key) {
      meanwhile.delete(key);
      trying((store) => store.removeItem(key));
    },
  };
}

export const inBrowser = storage("localStorage");
export const inTab = storage("sessionStorage");
