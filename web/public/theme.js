// Runs before the first paint, so that nobody sees the wrong theme flash. A file of its own because the policy of the
// page forbids scripts inside it.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    let chosen = null;
    try {
      chosen = localStorage.getItem("moothall-theme");
    } catch {
      // Storage may be forbidden; then the system's theme it is.
    }
    document.documentElement.dataset.theme =
      chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
  };
  dark.addEventListener("change", apply);
  apply();
})();
