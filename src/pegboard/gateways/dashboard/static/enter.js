"use strict";
// The ticket of `pegboard ui` is in the fragment of the address, which no browser sends: it goes into the form.
const ticket = location.hash.slice(1);
if (ticket) {
  history.replaceState(null, "", location.pathname);
  const field = document.querySelector("input[name=token]");
  field.value = ticket;
  field.form.submit();
}
