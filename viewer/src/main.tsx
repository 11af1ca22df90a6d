// The page: finds its data and draws the shell.

import { render } from "preact";
import { ErrorBox } from "./app/answer";
import { Shell } from "./app/shell";
import "./app/style.css";
import { openSource } from "./data/open";

const root = document.getElementById("app")!;
try {
  render(<Shell source={openSource()} />, root);
} catch (error) {
  render(<ErrorBox text={error instanceof Error ? error.message : String(error)} />, root);
}
