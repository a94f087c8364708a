import { defineConfig, type Plugin } from "vite";

// Every browser that runs this page reads woff2; the other forms of the fonts would only make the wheel larger.
const onlyWoff2: Plugin = {
  name: "only-woff2",
  enforce: "pre",
  transform(code, id) {
    if (!id.includes("katex") || !id.includes(".css")) return null;
    return code.replace(/,url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)/g, "");
  },
};

// The page of `certiformer explore`. Names carry hashes of their contents, so the same sources give the same files.
export default defineConfig({
  base: "./",
  server: { fs: { allow: [".."] } },
  plugins: [onlyWoff2],
  build: {
    outDir: "../src/certiformer/explore/bundle",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
});
