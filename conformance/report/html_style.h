#pragma once

namespace candela::conformance::report {

/// The page's style. Narrow screens read a table's rows as blocks, each value behind the name of
/// its column.
inline constexpr const char* kHtmlStyle = R"css(
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#16202b;--soft:#5a6776;--line:#dfe4ea;--code:#f0f3f6;
--passed:#1f8a4c;--failed:#c62f3b;--unsupported:#a9b4c0;--emulated:#5f8fd0;--xfail:#d99a1c;--mistrusted:#9067c6}
@media(prefers-color-scheme:dark){:root{--bg:#0f141a;--card:#171e26;--ink:#e6ebf1;--soft:#97a4b3;--line:#2a3440;
--code:#10161d;--passed:#3fb871;--failed:#f0616d;--unsupported:#5b6876;--emulated:#6ea3e8;--xfail:#e0ad45;--mistrusted:#ab87dd}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",
Arial,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:74rem;margin:0 auto;padding:2rem 1.5rem 3rem}
h1{font-size:1.9rem;line-height:1.2;margin:.1rem 0 .3rem;overflow-wrap:anywhere}
h1 small{font-size:.6em;font-weight:500;color:var(--soft)}
h2{font-size:1.15rem;margin:0 0 .8rem}
h2 small{font-weight:500;color:var(--soft);font-size:.85em}
p{margin:.3rem 0}
.eyebrow{margin:0;color:var(--soft);font-size:.8rem;letter-spacing:.08em;text-transform:uppercase}
.top{display:flex;flex-wrap:wrap;gap:1rem;align-items:flex-start;justify-content:space-between;margin-bottom:1.4rem}
.top>div:first-child{flex:1 1 20rem;min-width:0}
.soft{color:var(--soft)}
.verdict{padding:.45rem 1rem;border-radius:99px;font-weight:650;color:#fff;white-space:nowrap}
.verdict.good{background:#1b7a43}.verdict.bad{background:#bd2b37}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.8rem;margin-bottom:1.2rem}
.card,section{background:var(--card);border:1px solid var(--line);border-radius:10px}
.card{padding:.8rem 1rem}
.card b{display:block;font-size:1.5rem;line-height:1.25;font-weight:650}
.card span{color:var(--soft);font-size:.85rem}
.card.bad b{color:var(--failed)}
section{padding:1.1rem 1.25rem 1.2rem;margin-bottom:1.2rem}
.bar{display:flex;height:.7rem;border-radius:99px;overflow:hidden;background:var(--line);min-width:6rem}
.bar i{display:block;height:100%;min-width:2px}
.passed{background:var(--passed)}.failed{background:var(--failed)}.unsupported{background:var(--unsupported)}
.emulated{background:var(--emulated)}.xfail{background:var(--xfail)}.mistrusted{background:var(--mistrusted)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.6rem 0 0;padding:0;list-style:none;font-size:.87rem}
.legend i{display:inline-block;width:.7rem;height:.7rem;border-radius:3px;margin-right:.4rem}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th{text-align:left;color:var(--soft);font-weight:600;font-size:.8rem;padding:.3rem .9rem .4rem 0;border-bottom:1px solid var(--line)}
td{padding:.42rem .9rem .42rem 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
tbody tr:last-child td{border-bottom:0}
th.n,td.n{text-align:right;white-space:nowrap}
td.wide{width:32%;vertical-align:middle}
tr.sum td{font-weight:650;border-top:1px solid var(--line)}
.zero{color:var(--soft);opacity:.6}.hot{color:var(--failed);font-weight:650}
code,pre{font:.86em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
pre{margin:.35rem 0 0;padding:.45rem .7rem;background:var(--code);border:1px solid var(--line);border-radius:6px;white-space:pre-wrap}
details{border-top:1px solid var(--line)}
details:first-of-type{border-top:0}
summary{cursor:pointer;padding:.55rem 0;display:flex;gap:.8rem;align-items:baseline;list-style:none}
summary::-webkit-details-marker{display:none}
summary::before{content:"";flex:none;width:.42rem;height:.42rem;border:solid var(--soft);border-width:0 2px 2px 0;
transform:rotate(-45deg) translateY(-.15rem);transition:transform .12s}
details[open]>summary::before{transform:rotate(45deg) translateY(-.15rem)}
.what{flex:1;min-width:0}
.first{display:-webkit-box;-webkit-line-clamp:2;-webkit-box-orient:vertical;overflow:hidden;color:var(--soft);font-size:.87rem;overflow-wrap:anywhere}
details[open]>summary .first{display:none}
.folded{padding-top:.35rem;padding-bottom:.35rem}.folded h2{margin:0}.folded table{margin-bottom:.6rem}
summary:focus-visible{outline:2px solid var(--emulated);outline-offset:2px;border-radius:4px}
.count{flex:none;font-weight:650}
.failures{list-style:none;margin:0;padding:0 0 .6rem 1.2rem}
.failures li{padding:.5rem 0 .6rem;border-top:1px dashed var(--line)}
.failures li:first-child{border-top:0}
.reason{margin:.15rem 0 0;overflow-wrap:anywhere;white-space:pre-line}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1.4rem;margin:0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.problems{margin:0;padding-left:1.1rem}
footer{color:var(--soft);font-size:.85rem;margin-top:1.6rem}
@media(max-width:640px){
main{padding:1.2rem .8rem 2rem}section{padding:.9rem .9rem 1rem}h1{font-size:1.5rem}
.cards{grid-template-columns:repeat(2,1fr);gap:.6rem}.card b{font-size:1.25rem}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
table,tbody,tr,td{display:block;width:100%}
tr{padding:.6rem 0;border-bottom:1px solid var(--line)}tbody tr:last-child{border-bottom:0}
td,th.n,td.n,td.wide{border:0;padding:.1rem 0;width:100%;text-align:left;white-space:normal}
tr.sum td{border:0}
td.n{display:flex;justify-content:space-between;gap:1rem}
td[data-k]::before{content:attr(data-k);color:var(--soft);font-weight:400}
td:not(.n)[data-k]::before{display:block;font-size:.8rem}
td.zero{display:none}
.failures{padding-left:0}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.6rem}}
@media print{body{background:#fff}section,.card{break-inside:avoid;border-color:#bbb}main{padding:0;max-width:none}}
)css";

} // namespace candela::conformance::report
