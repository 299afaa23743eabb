import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/home.css";
import "./styles/run.css";
import "./styles/results.css";
import "./styles/pages.css";
import "./styles/drafts.css";
import "./styles/motion.css";
import "./styles/narrow.css";

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
