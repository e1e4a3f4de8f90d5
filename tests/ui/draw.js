// The page as it stands, drawn as an SVG: what has a ground or a border becomes a rectangle, what is written becomes text at its place. An
// expression, run in the page by page.py.
(() => {
	const size = { w: innerWidth, h: innerHeight }, out = [];
	const round = (n) => Math.round(n * 10) / 10;
	const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
	const isSeen = (colour) => colour !== 'rgba(0, 0, 0, 0)' && colour !== 'transparent';

	/** What of the element its scrolling parents let be seen. */
	const windowOf = (element) => {
		const seen = { left: 0, top: 0, right: size.w, bottom: size.h };
		for (let e = element; e; e = e.parentElement) {
			if (!/auto|hidden|scroll|clip/.test(getComputedStyle(e).overflowY))
				continue;
			const r = e.getBoundingClientRect();
			Object.assign(seen, { left: Math.max(seen.left, r.left), top: Math.max(seen.top, r.top), right: Math.min(seen.right, r.right), bottom: Math.min(seen.bottom, r.bottom) });
		}
		return seen;
	};

	const box = (element) => {
		const s = getComputedStyle(element), r = element.getBoundingClientRect(), w = windowOf(element.parentElement);
		const x = Math.max(r.left, w.left), y = Math.max(r.top, w.top), width = Math.min(r.right, w.right) - x, height = Math.min(r.bottom, w.bottom) - y;
		if (width <= 0 || height <= 0)
			return;
		const place = `x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"`;
		const hasFrame = parseFloat(s.borderLeftWidth) > 0 && parseFloat(s.borderTopWidth) > 0;
		if (isSeen(s.backgroundColor) || hasFrame)
			out.push(`<rect ${place} rx="${parseFloat(s.borderTopLeftRadius) || 0}" fill="${isSeen(s.backgroundColor) ? s.backgroundColor : 'none'}"${hasFrame ? ` stroke="${s.borderTopColor}"` : ''}/>`);
		if (hasFrame)
			return;
		for (const [side, x1, y1, x2, y2] of [['Bottom', x, y + height, x + width, y + height], ['Left', x, y, x, y + height], ['Top', x, y, x + width, y]])
			if (parseFloat(s[`border${side}Width`]) > 0)
				out.push(`<path d="M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}" stroke="${s[`border${side}Color`]}"/>`);
	};

	const write = (text, x, y, s, fill) => {
		const classes = s.fontFamily.includes('mono') && !s.fontFamily.startsWith('system-ui') ? ' class="m"' : '';
		out.push(`<text x="${round(x)}" y="${round(y)}"${classes}${s.fontWeight > 500 ? ' font-weight="600"' : ''}${s.fontSize === '13px' ? '' : ` font-size="${parseFloat(s.fontSize)}"`} fill="${fill}">${escape(text)}</text>`);
	};

	/** Line by line, as far as it is seen. */
	const words = (node) => {
		const element = node.parentElement, s = getComputedStyle(element), w = windowOf(element), range = document.createRange();
		let line = null;
		const flush = () => {
			if (line && line.text.trim() && line.bottom <= w.bottom + 2 && line.top >= w.top - 2)
				write(line.text.trimEnd(), line.left, line.bottom - (line.bottom - line.top) * 0.235, s, s.color);
		};
		for (let i = 0; i < node.length; i++) {
			range.setStart(node, i);
			range.setEnd(node, i + 1);
			const r = range.getBoundingClientRect();
			if (r.width === 0 || r.right > w.right)
				continue;
			if (!line || Math.abs(r.top - line.top) > 2) {
				flush();
				line = { text: '', left: r.left, top: r.top, bottom: r.bottom };
			}
			line.text += node.data[i];
		}
		flush();
	};

	/** The mark before a state. */
	const mark = (element) => {
		const s = getComputedStyle(element, '::before');
		if (s.content === 'none' || s.content === 'normal')
			return;
		const r = element.getBoundingClientRect();
		write(s.content.replaceAll('"', ''), r.left + parseFloat(getComputedStyle(element).paddingLeft), r.top + 14, s, s.color);
	};

	const visit = (element) => {
		const s = getComputedStyle(element);
		if (s.display === 'none' || s.visibility === 'hidden' || element.tagName === 'DIALOG' && !element.open)
			return;
		box(element);
		mark(element);
		if (element.tagName === 'INPUT') {
			const r = element.getBoundingClientRect();
			write(element.value || element.placeholder, r.left + 8, r.top + r.height * 0.68, s, element.value ? s.color : '#888');
		}
		for (const child of element.childNodes)
			if (child.nodeType === Node.TEXT_NODE)
				words(child);
			else if (child.nodeType === Node.ELEMENT_NODE)
				visit(child);
	};

	visit(document.body);
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.w} ${size.h}" font-family="system-ui, DejaVu Sans, sans-serif" font-size="13">
<style>text { white-space: pre } .m { font-family: ui-monospace, DejaVu Sans Mono, monospace }</style>
${out.join('\n')}
</svg>
`;
})()
