// An object as YAML, to be read by people.

const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./(-][A-Za-z0-9_./()-]*)*$/; // no text that means something else to YAML
const WORDS = /^(true|false|null|yes|no|on|off|y|n|~)$/i;
const DEPTH_MAX = 64;

function isEmpty(value) {
	return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function scalar(value) {
	if (typeof value !== 'string')
		return value === null ? 'null' : Array.isArray(value) ? '[]' : typeof value === 'object' ? '{}' : String(value);
	return PLAIN.test(value) && !WORDS.test(value) ? value : JSON.stringify(value);
}

/** A text of several lines stands as a block, when a block can hold it. */
function isBlock(value) {
	return typeof value === 'string' && /[^\n]\n./s.test(value) && !/[^\t\n\x20-\uffff]|[\x7f\u2028\u2029]|^\s|[ \t]\n/.test(value);
}

function block(value, indent) {
	const keep = value.endsWith('\n\n') ? '+' : value.endsWith('\n') ? '' : '-';
	const text = value.replace(/\n$/, '').split('\n').map((line) => (line ? indent + line : '')).join('\n');
	return `|${keep}\n${text}\n`;
}

function member(value, indent, depth) {
	if (isBlock(value))
		return ` ${block(value, `${indent}  `)}`;
	if (typeof value !== 'object' || value === null || isEmpty(value))
		return ` ${scalar(value)}\n`;
	return `\n${lines(value, Array.isArray(value) ? indent : `${indent}  `, depth + 1)}`;
}

function item(value, indent, depth) {
	if (typeof value === 'object' && value !== null && !isEmpty(value))
		return `${indent}- ${lines(value, `${indent}  `, depth + 1).slice(indent.length + 2)}`;
	return `${indent}-${isBlock(value) ? ` ${block(value, `${indent}  `)}` : ` ${scalar(value)}\n`}`;
}

function lines(value, indent, depth) {
	if (depth > DEPTH_MAX)
		return `${indent}…\n`;
	if (Array.isArray(value))
		return value.map((v) => item(v, indent, depth)).join('');
	return Object.entries(value).map(([name, v]) => `${indent}${scalar(name)}:${member(v, indent, depth)}`).join('');
}

export function toYaml(value) {
	return typeof value === 'object' && value !== null && !isEmpty(value) ? lines(value, '', 0) : `${scalar(value)}\n`;
}
