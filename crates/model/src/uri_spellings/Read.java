// Reads URIs as a server with Java's `URI` does. One line in for each URI and one line out with its readings: lists of
// code units in hexadecimal, readings separated by spaces, since Java has no reader of JSON.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.IDN;
import java.net.InetAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Set;

class Read {
    static String decoded(String line) {
        StringBuilder text = new StringBuilder();
        for (int at = 0; at + 4 <= line.length(); at += 4) {
            text.append((char) Integer.parseInt(line.substring(at, at + 4), 16));
        }
        return text.toString();
    }

    static String encoded(String text) {
        StringBuilder line = new StringBuilder();
        for (char unit : text.toCharArray()) {
            line.append(String.format("%04x", (int) unit));
        }
        return line.toString();
    }

    /** The host to which a connection goes. Names are not looked up. */
    static String host(String name) throws Exception {
        if (name == null) {
            return "";
        }
        name = name.replaceAll("\\.+$", "");
        if (name.matches("[0-9.]+|\\[.*\\]")) {
            return InetAddress.getByName(name).getHostAddress();
        }
        return IDN.toASCII(name, IDN.ALLOW_UNASSIGNED).toLowerCase(Locale.ROOT);
    }

    static Set<String> readings(String text) throws Exception {
        URI uri = new URI(text);
        Set<String> found = new LinkedHashSet<>();
        String path = uri.getPath() == null ? uri.getSchemeSpecificPart() : uri.getPath();
        String host = uri.getHost() == null ? uri.getAuthority() : uri.getHost();
        // A name that is not in ASCII has no host, only an authority.
        if (host != null && uri.getHost() == null) {
            host = host.replaceAll("^.*@|:[0-9]*$", "");
        }
        host = host(host);
        String before = uri.getScheme() + (host.isEmpty() ? ":" : "://" + host);
        found.add(before + path);
        // Servlet containers remove the parameters of segments and resolve the rest.
        String bare = path.replaceAll(";[^/]*", "");
        found.add(before + (bare.startsWith("/") ? new URI(null, null, bare, null).normalize().getPath() : bare));
        return found;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            StringBuilder out = new StringBuilder();
            try {
                for (String reading : readings(decoded(line))) {
                    out.append(out.length() == 0 ? "" : " ").append(encoded(reading));
                }
            } catch (Exception refused) {
                // No reading.
            }
            System.out.println(out);
        }
    }
}
