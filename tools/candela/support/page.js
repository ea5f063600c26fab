// Finds rows of tables and blocks of figures by their text. Without scripts the page has no field
// for it.
const field = document.querySelector('.find input');
document.querySelector('.find').hidden = false;

field.addEventListener('input', () => {
  const wanted = field.value.toLowerCase();
  let found = 0;
  for (const part of document.querySelectorAll('.block,tbody tr')) {
    const text = (part.querySelector('title') || part).textContent.toLowerCase();
    const missed = !text.includes(wanted);
    part.classList.toggle('missed', missed);
    found += !missed;
  }
  document.querySelector('.find span').textContent = wanted ? found + ' found' : '';
});
