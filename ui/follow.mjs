// A collection kept up to date: listed in pages, then watched. Like other clients' informers it resumes a watch that ended where
// it was, lists anew when the server has forgotten that (410), and waits longer after each failure.
import { ApiError } from './api.mjs';

const PAGE = 500; // objects a list's page
const LINE_MAX = 16 << 20; // characters of one event; what is longer is no event of ours
const WAIT_FIRST_MS = 500;
const WAIT_MAX_MS = 30000;
const WATCH_S = 300; // after which the server ends a watch, and it is resumed

export const keyOf = (object) => `${object.metadata.namespace || ''}/${object.metadata.name}`;

/** How long to wait after the n-th failure in a row: doubling, with jitter, so that pages do not come back all at once. */
export function waitMs(failures, random = Math.random) {
	const full = Math.min(WAIT_MAX_MS, WAIT_FIRST_MS * 2 ** Math.min(failures - 1, 10));
	return full / 2 + random() * full / 2;
}

/** The events of a watch's body, a line each. */
export async function* eventsOf(body) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = '';
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done)
				return;
			const lines = (rest + value).split('\n');
			rest = lines.pop();
			if (rest.length > LINE_MAX)
				throw new Error('an event of the watch is too long');
			for (const line of lines)
				if (line)
					yield JSON.parse(line);
		}
	} finally {
		reader.cancel().catch(() => {});
	}
}

/** Nobody reads who wrote which field here, and it is half of an object's bytes. */
function slim(object) {
	delete object.metadata.managedFields;
	return object;
}

export class Follower {
	/**
	 * changed(keys): objects of these keys came, changed or went. told(state, error): 'loading', 'live' or 'waiting' (with the
	 * error that it waits after). sleep: for tests.
	 */
	constructor(api, path, { changed, told, query = '', sleep = pause }) {
		Object.assign(this, { api, path, changed, told, query, sleep });
		this.items = new Map();
		this.version = '';
		this.aborter = new AbortController();
	}

	stop() {
		this.aborter.abort();
	}

	url(parameters) {
		const all = new URLSearchParams(this.query);
		for (const [name, value] of Object.entries(parameters))
			all.set(name, value);
		return `${this.path}?${all}`;
	}

	/** Until it is stopped. */
	async run() {
		const { signal } = this.aborter;
		for (let failures = 0; !signal.aborted;) {
			try {
				if (!this.version)
					await this.list();
				this.told('live');
				await this.watch(() => { failures = 0; });
			} catch (error) {
				if (signal.aborted)
					return;
				if (error.status === 410) {
					this.version = '';
					if (failures++ === 0)
						continue; // forgotten: nothing is wrong yet
				} else {
					failures++;
				}
				this.told('waiting', error);
				await this.sleep(waitMs(failures), signal);
			}
		}
	}

	async list() {
		const seen = new Map();
		let next = '', version;
		this.told('loading');
		do {
			const page = await this.api.get(this.url(next ? { limit: PAGE, continue: next } : { limit: PAGE }), this.aborter.signal);
			for (const object of page.items || [])
				seen.set(keyOf(object), slim(object));
			next = page.metadata.continue || '';
			version = page.metadata.resourceVersion;
		} while (next);
		this.replace(seen);
		this.version = version;
	}

	replace(seen) {
		const touched = new Set(this.items.keys());
		for (const [key, object] of seen) {
			if (this.items.get(key)?.metadata.resourceVersion === object.metadata.resourceVersion)
				touched.delete(key);
			else
				touched.add(key);
		}
		this.items = seen;
		this.changed(touched);
	}

	/** Ends when the server ends it. alive(): something came. */
	async watch(alive) {
		const response = await this.api.open('GET', this.url({
			watch: '1', allowWatchBookmarks: 'true', resourceVersion: this.version, timeoutSeconds: WATCH_S,
		}), { signal: this.aborter.signal });
		for await (const { type, object } of eventsOf(response.body)) {
			if (type === 'ERROR')
				throw new ApiError(object.code, object.reason, object.message);
			alive();
			this.version = object.metadata.resourceVersion;
			if (type === 'BOOKMARK')
				continue;
			if (type === 'DELETED')
				this.items.delete(keyOf(object));
			else
				this.items.set(keyOf(object), slim(object));
			this.changed(new Set([keyOf(object)]));
		}
	}
}

function pause(ms, signal) {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, ms);
		signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
	});
}
