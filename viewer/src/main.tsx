// Entry point: finds the data and renders the shell.

import { render } from "preact";
import "./page/theme.css"; // first: every other style sheet builds on these two
import "./page/base.css";
import { ErrorBox } from "./parts/answer";
import { Shell } from "./app/shell";
import { openSource } from "./data/open";

const root = document.getElementById("app")!;
try {
  render(<Shell source={openSource()} />, root);
} catch (error) {
  render(<ErrorBox text={error instanceof Error ? error.message : String(error)} />, root);
}
