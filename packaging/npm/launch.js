#!/usr/bin/env node
// Starts the program of the platform's package that has the name of this file, and ends as it ends.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const path = require("node:path");

const name = path.basename(__filename, ".js");
const glibc = process.report && process.report.getReport().header.glibcVersionRuntime;
const platform = `${process.platform}-${process.arch}-${glibc ? "gnu" : "musl"}`;
let program;
try {
  program = require.resolve(`@mcp-broker/${platform}/bin/${name}`);
} catch {
  console.error(`mcp-broker: the package @mcp-broker/${platform} is not installed; there are packages for Linux, and npm must install optional dependencies`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`mcp-broker: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code === null ? 128 + constants.signals[signal] : code));
