// A link to an event opens it. The only script of this page; its hash is in the page's security policy.
function reveal() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) { target.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", reveal);
document.addEventListener("click", (event) => { if (event.target.closest("a[href^='#e']")) setTimeout(reveal); });
reveal();
