// An issuer of tokens for tests, made with `oauth2-mock-server`: `node issuer.mjs`, with Node 22. It listens on a free port of
// 127.0.0.1 and prints its URL, and then a line for each request that it answers, on standard error.
import { Events, JWKStore, OAuth2Server } from "oauth2-mock-server";

const ALGORITHM = "ES256";
// The groups of each client and of the user who logs in.
const GROUPS = { ci: ["eng-platform"], guest: ["visitors"], johndoe: ["eng-platform"] };

// The keys of the issuer: the newest one signs, all of them are published.
class Keys {
    #stores = [];

    async rotate(keeps) {
        const store = new JWKStore();
        await store.generate(ALGORITHM);
        this.#stores = keeps ? [store, ...this.#stores] : [store];
    }

    get() {
        return this.#stores[0].get();
    }

    toJSON() {
        return this.#stores.flatMap((store) => store.toJSON());
    }
}

const keys = new Keys();
await keys.rotate(false);
const server = new OAuth2Server();
// The server signs and publishes with the keys of this property; its own store cannot remove a key.
Object.defineProperty(server.issuer, "keys", { value: keys });
const log = (...words) => console.error(words.join(" "));

server.service.on(Events.BeforeWellKnownOpenIdConfiguration, ({ body }) => {
    body.id_token_signing_alg_values_supported = [ALGORITHM];
    log("discovery");
});

// The scope that the user grants to each code: all that the client asks for.
const granted = new Map();
server.service.on(Events.BeforeAuthorizeRedirect, ({ url }, { query }) => {
    granted.set(url.searchParams.get("code"), query.scope);
    log("authorize", query.client_id, query.code_challenge_method, query.resource, query.scope);
});

// Both tokens of a reply pass here; only an access token has a scope.
server.service.on(Events.BeforeTokenSigning, ({ header, payload }, { body, headers }) => {
    if (!("scope" in payload)) return;
    const basic = Buffer.from(headers.authorization?.slice("Basic ".length) ?? "", "base64").toString();
    const client = body.client_id ?? basic.split(":")[0];
    if (body.code) payload.scope = granted.get(body.code);
    // The resource of RFC 8707 is the audience, as RFC 9068 says.
    payload.aud ??= body.resource;
    payload.client_id = client;
    payload.sub ??= client;
    payload.groups = GROUPS[payload.sub] ?? [];
    // Two tokens of one second differ.
    payload.jti = crypto.randomUUID();
    header.typ = body.typ ?? "at+jwt";
    // Seconds until the token expires, for tests; of an expired one they are negative.
    if (body.expires_in) payload.exp = payload.iat + Number(body.expires_in);
    log("token", body.grant_type, client, payload.aud, body.code_verifier ? "PKCE" : "");
});

// A new key signs from now on. `keep` publishes the earlier ones as well.
server.service.addRoute("POST", "/test/rotate", async ({ body }, response) => {
    await keys.rotate(body.keep === "true");
    response.end(JSON.stringify(keys));
});

await server.start(0, "127.0.0.1");
server.issuer.url = `http://127.0.0.1:${server.address().port}`;
log(`listening on ${server.issuer.url}`);
