// The authorization-code flow of the TypeScript SDKs, as a user of them writes it, with a client that is registered
// at the issuer: `node oauth.mjs v1|v2 legacy|auto ISSUER URL NAME ARGS`. Prints one JSON object.
const [generation, mode, issuer, url, name, args] = process.argv.slice(2);

const sdk =
    generation === "v1"
        ? {
              ...(await import("@modelcontextprotocol/sdk/client/index.js")),
              ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
              ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
          }
        : await import("@modelcontextprotocol/client");

// What an application keeps, and the step that its user does in a browser.
class Provider {
    redirectUrl = "http://127.0.0.1/callback";
    clientMetadata = { client_name: "oauth", redirect_uris: [this.redirectUrl], token_endpoint_auth_method: "none" };

    clientInformation = () => ({ client_id: "typescript", issuer });
    state = () => (this.sent = crypto.randomUUID());
    tokens = () => this.kept;
    saveTokens = (tokens) => void (this.kept = tokens);
    codeVerifier = () => this.verifier;
    saveCodeVerifier = (verifier) => void (this.verifier = verifier);
    redirectToAuthorization = (page) => void (this.page = page);

    // The issuer asks its user nothing: its answer redirects to the application.
    async callback() {
        const answer = await fetch(this.page, { redirect: "manual" });
        const { searchParams } = new URL(answer.headers.get("location"));
        if (searchParams.get("state") !== this.sent) throw new Error(`another state: ${searchParams}`);
        return searchParams;
    }
}

const provider = new Provider();
const transport = () => new sdk.StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
const newClient = () => new sdk.Client({ name: "oauth", version: "0" }, { versionNegotiation: { mode } });
const first = transport();
const refused = await newClient()
    .connect(first)
    .catch((error) => error);
if (!(refused instanceof sdk.UnauthorizedError)) throw new Error(`not refused: ${refused}`);
const callback = await provider.callback();
await first.finishAuth(generation === "v1" ? callback.get("code") : callback);

const client = newClient();
await client.connect(transport());
const seen = { tools: (await client.listTools()).tools.map((tool) => tool.name) };
seen.call = await client.callTool({ name, arguments: JSON.parse(args) });
await client.close();
process.stdout.write(JSON.stringify(seen) + "\n");
