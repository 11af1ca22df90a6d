// The page: finds its data and draws the shell.

import { render } from "preact";
import "./app/style.css"; // first: what parts add comes after it
import { ErrorBox } from "./app/answer";
import { Shell } from "./app/shell";
import { openSource } from "./data/open";

const root = document.getElementById("app")!;
try {
  render(<Shell source={openSource()} />, root);
} catch (error) {
  render(<ErrorBox text={error instanceof Error ? error.message : String(error)} />, root);
}
