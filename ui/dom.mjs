// Elements of the page. What came from the API becomes text, never markup.

/** An element with these properties (data-… and aria-… as attributes) and children; texts become text nodes. */
export function el(tag, properties = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(properties)) {
		if (/^(data|aria)-|^(role|scope|for)$/.test(name))
			element.setAttribute(name, value);
		else
			element[name] = value;
	}
	element.append(...children.filter((child) => child !== null && child !== undefined));
	return element;
}

export const byId = (id) => document.getElementById(id);

/** Touches the page only when there is something new. */
export function setText(element, text) {
	if (element.textContent !== text)
		element.textContent = text;
}

/** Asks with a dialog of the page; true when its form was sent. */
export function ask(dialog, cancel) {
	return new Promise((resolve) => {
		let yes = false;
		const form = dialog.querySelector('form'), ended = new AbortController(), { signal } = ended;
		form.addEventListener('submit', (event) => {
			event.preventDefault();
			yes = true;
			dialog.close();
		}, { signal });
		cancel?.addEventListener('click', () => dialog.close(), { signal });
		dialog.addEventListener('close', () => {
			ended.abort();
			resolve(yes);
		}, { signal });
		dialog.showModal();
	});
}
