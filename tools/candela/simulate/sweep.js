'use strict';
// Rows stand in the page; any two numeric columns make the plot. Less is better in both, unless the
// name says otherwise.
const data = JSON.parse(document.getElementById('rows').textContent),
      rows = data.rows.filter(r => r.status === 'done');
const byId = id => document.getElementById(id),
      more = new Set(['inferences_per_s', 'mac_utilization']);

const short = v => {
  if (v >= 1e9) return (v / 1e9).toPrecision(3) + ' G';
  if (v >= 1e6) return (v / 1e6).toPrecision(3) + ' M';
  if (v >= 1e4) return (v / 1e3).toPrecision(3) + ' k';
  return +v.toPrecision(3) + '';
};

// Where the host's share has no time, the device's alone is compared, among rows with the same
// share.
const time = rows.some(r => r.time_ms !== undefined) ? 'time_ms' : 'device_ms';
const headOf = name => data.heads[name] ? data.heads[name][0] : name,
      escaped = text => text.replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`),
      inUnit = (name, value) => data.heads[name] ? value * data.heads[name][1] : value;
for (const [id, first] of [['x', 'macs_per_cycle'], ['y', time]])
  for (const name of data.numbers)
    if (rows.some(r => +r[name] > 0))
      byId(id).add(new Option(headOf(name), name, false, name === first));
for (const name of data.models) byId('model').add(new Option(name, name));

function draw() {
  const x = byId('x').value, y = byId('y').value, model = byId('model').value;
  const points = rows.filter(r => `${r.model} batch ${r.batch}` === model)
                     .map(r => ({r, x: inUnit(x, +r[x]), y: inUnit(y, +r[y])}))
                     .filter(p => p.x > 0 && p.y > 0);
  const better = (a, b, name) => more.has(name) ? a >= b : a <= b;
  for (const p of points)
    p.front = p.r.comparable !== false &&
        !points.some(
            q => q.r.comparable !== false && better(q.x, p.x, x) && better(q.y, p.y, y) &&
                (q.x !== p.x || q.y !== p.y));
  const W = Math.max(320, Math.min(1000, byId('plot').clientWidth)), H = 360, L = 64, B = 40;
  const span = key => {
    const v = points.map(p => p[key]), low = Math.min(...v), high = Math.max(...v);
    return [low / 1.15, high * 1.15];
  };
  if (!points.length) {
    byId('plot').textContent = 'no results';
    return;
  }
  const [x0, x1] = span('x'), [y0, y1] = span('y');
  const X = v => L + (W - L - 12) * Math.log(v / x0) / Math.log(x1 / x0),
        Y = v => 10 + (H - B - 10) * (1 - Math.log(v / y0) / Math.log(y1 / y0));
  let out = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${escaped(headOf(y))} against ${
      escaped(headOf(x))}">`;
  for (let i = 0; i <= 4; ++i) {
    const vx = x0 * (x1 / x0) ** (i / 4), vy = y0 * (y1 / y0) ** (i / 4);
    out += `<path class="grid" d="M${X(vx)} 10V${H - B}M${L} ${Y(vy)}H${W - 12}"/><text x="${
        X(vx)}" y="${H - B + 16}" text-anchor="middle">${short(vx)}</text><text x="${L - 6}" y="${
        Y(vy) + 4}" text-anchor="end">${short(vy)}</text>`;
  }
  const front = points.filter(p => p.front).sort((a, b) => a.x - b.x);
  out += `<path class="roof" d="M${front.map(p => `${X(p.x)} ${Y(p.y)}`).join('L')}"/><text x="${
      W / 2}" y="${H - 4}" text-anchor="middle">${escaped(headOf(x))}</text><text x="${
      L + 6}" y="20">${escaped(headOf(y))}</text>`;
  for (const p of points)
    out += `<circle cx="${X(p.x)}" cy="${Y(p.y)}" r="${p.front ? 6 : 4}" fill="${
        p.front ? 'var(--emulated)' : 'var(--unsupported)'}"><title></title></circle>`;
  byId('plot').innerHTML = out + '</svg>';
  const titles = byId('plot').querySelectorAll('circle title');  // names are text, not markup
  points.forEach(
      (p, i) => titles[i].textContent =
          `${p.r.npu} ${data.varied.map(k => `${k} ${p.r[k]}`).join(', ')}: ${headOf(x)} ${
              short(p.x)}, ${headOf(y)} ${short(p.y)}`);
  const wanted = new Set(front.map(p => p.r.id));
  for (const row of document.querySelectorAll('tbody tr'))
    row.classList.toggle('sum', wanted.has(row.dataset.id));
}

// --- Rows: every column sorts; where no heads are seen, the list does.
const table = byId('points'), body = table.tBodies[0], lines = [...body.rows],
      heads = [...table.tHead.rows[0].cells], order = byId('order');

function sortBy(column, down) {
  for (const head of heads) head.removeAttribute('aria-sort');
  heads[column].setAttribute('aria-sort', down ? 'descending' : 'ascending');
  order.value = column;
  const key = line => {
    const cell = line.cells[column], number = parseFloat(cell.dataset.v);
    return {number, text: cell.textContent};
  };
  const compared = (a, b) => {
    const one = key(a), other = key(b);
    if (!isNaN(one.number) && !isNaN(other.number)) return one.number - other.number;
    return one.text < other.text ? -1 : +(one.text > other.text);
  };
  lines.sort((a, b) => compared(a, b) * (down ? -1 : 1));
  body.append(...lines);
}

for (const [column, head] of heads.entries()) {
  head.onclick = () => sortBy(column, head.getAttribute('aria-sort') === 'ascending');
  order.add(new Option('by ' + head.textContent, column));
}
order.onchange = () => sortBy(+order.value, false);

for (const id of ['x', 'y', 'model']) byId(id).onchange = draw;
draw();
new ResizeObserver(draw).observe(document.querySelector('main'));
