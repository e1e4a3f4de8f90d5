// Asking the API: with the user's own token, and with the Status message for an error. Knows no page, so that tests run it
// without a browser.

/** What the server says when it refuses. */
export class ApiError extends Error {
	constructor(status, reason, message) {
		super(message);
		this.status = status;
		this.reason = reason;
	}
}

const TOKEN_KEY = 'agent-sandbox-token';

/** The token behind # of the address, which is taken out of it, or the one kept in this tab. */
export function takeToken(location, history, storage) {
	const given = new URLSearchParams(location.hash.replace(/^#/, '')).get('token');
	if (given !== null)
		history.replaceState(null, '', location.pathname + location.search);
	if (given)
		storage.setItem(TOKEN_KEY, given);
	return storage.getItem(TOKEN_KEY) || '';
}

export const hasToken = (storage) => storage.getItem(TOKEN_KEY) !== null;

export function keepToken(storage, token) {
	storage.setItem(TOKEN_KEY, token);
}

export function forgetToken(storage) {
	storage.removeItem(TOKEN_KEY);
}

/** Of a reply that is no success: its Status, or its text when it is none. */
export async function errorOf(response) {
	const text = (await response.text()).slice(0, 2000);
	try {
		const status = JSON.parse(text);
		if (status.kind === 'Status')
			return new ApiError(response.status, status.reason || '', status.message || `HTTP ${response.status}`);
	} catch { /* not JSON: its text is what there is to say */ }
	return new ApiError(response.status, '', text.trim() || `HTTP ${response.status}`);
}

export class Api {
	/** fetch: the browser's, or a test's. */
	constructor(token, fetch = (...args) => globalThis.fetch(...args)) {
		this.token = token;
		this.fetch = fetch;
	}

	/** The reply, when it is a success. body: an object, sent as JSON of that type. */
	async open(method, path, { body, type = 'application/json', signal } = {}) {
		const headers = { Accept: 'application/json' };
		if (this.token)
			headers.Authorization = `Bearer ${this.token}`;
		if (body !== undefined)
			headers['Content-Type'] = type;
		const response = await this.fetch(path, {
			method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
			credentials: 'same-origin', cache: 'no-store', redirect: 'error',
		});
		if (!response.ok)
			throw await errorOf(response);
		return response;
	}

	async request(method, path, options) {
		return (await this.open(method, path, options)).json();
	}

	get(path, signal) {
		return this.request('GET', path, { signal });
	}

	merge(path, patch) {
		return this.request('PATCH', path, { body: patch, type: 'application/merge-patch+json' });
	}

	/** Only the very object that the user has seen. */
	delete(path, uid) {
		return this.request('DELETE', path, { body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } } });
	}
}
