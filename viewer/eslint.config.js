// Rules for the viewer's TypeScript (with type information) and its browser tests (plain JavaScript). Which folder may import
// which is in .dependency-cruiser.cjs.

import js from "@eslint/js";
import reactHooks from "eslint-plugin-react-hooks";
import globals from "globals";
import tseslint from "typescript-eslint";

// Names in a trace are hostile: text goes into text nodes, never through a parser of markup.
const kMarkup = "A trace's text must not become markup: put it into a text node.";
const kNoMarkup = [
  { selector: "MemberExpression[property.name=/^(inner|outer)HTML$|^insertAdjacentHTML$/]", message: kMarkup },
  { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: kMarkup },
];

export default tseslint.config(
  { ignores: ["dist", "e2e/artefacts"] },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  {
    files: ["**/*.ts", "**/*.tsx"],
    extends: [tseslint.configs.recommendedTypeChecked, tseslint.configs.stylisticTypeChecked],
    plugins: { "react-hooks": reactHooks },
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      eqeqeq: "error",
      "no-restricted-syntax": ["error", ...kNoMarkup],
      "react-hooks/rules-of-hooks": "error",
      "@typescript-eslint/consistent-type-imports": ["error", { fixStyle: "inline-type-imports" }],
      "@typescript-eslint/no-empty-function": ["error", { allow: ["arrowFunctions"] }],
      "@typescript-eslint/prefer-nullish-coalescing": ["error", { ignoreBooleanCoercion: true, ignorePrimitives: true }],
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
    },
  },
  {
    files: ["**/*.js", "**/*.mjs", "**/*.cjs"],
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
);
