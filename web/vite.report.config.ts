import { defineConfig } from "vite";

// The one script of `report.html`, circuit and audit pages: everything in it, also its style sheet.
export default defineConfig({
  publicDir: false,
  build: {
    outDir: "../src/certiformer/report/bundle",
    emptyOutDir: true,
    target: "es2022",
    lib: { entry: "src/report.ts", formats: ["iife"], name: "certiformerReport", fileName: () => "report.js" },
  },
});
