// What a pane is to the shell. `src/panes/index.ts` lists them in the order of the tabs.

import type { ComponentType } from "preact";
import type { TraceClient } from "../data/client";

export interface PaneProps {
  trace: TraceClient;
}

export interface Pane {
  id: string; // in the URL and before its keys there
  title: string;
  component: ComponentType<PaneProps>;
  // Fills the window and scrolls by itself (the timeline); otherwise the page scrolls.
  fills?: boolean;
}
