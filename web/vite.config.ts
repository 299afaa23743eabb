import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env["MOOTHALL_SERVER"] ?? "http://127.0.0.1:7777";

export default defineConfig({
  plugins: [react()],
  resolve: {
    alias: { "react-style-singleton": fileURLToPath(new URL("src/ui/style-singleton.ts", import.meta.url)) },
  },
  build: {
    target: "es2023",
    // A small file as a `data:` address would break the policy of the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    manifest: "manifest.json",
  },
  server: { proxy: { "/api": { target: server, changeOrigin: true } } },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/test-setup.ts"],
    testTimeout: 30_000,
  },
});
