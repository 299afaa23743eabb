import { useEffect } from "react";
import { RecentRuns } from "../home/recent-runs";
import { TickerForm } from "../home/ticker-form";
import { Hero } from "../viz/hero";

export default function Home() {
  useEffect(() => {
    document.title = "Moothall";
  }, []);
  return (
    <div className="start fade">
      <div className="hero">
        <div>
          <h1>Which company should we analyze?</h1>
          <p className="sub">
            Five analysts propose 15 strategic moves. A critic challenges each one, round after round. You get the three
            best, with the reasons.
          </p>
          <TickerForm />
        </div>
        <figure aria-label="15 moves, 10 rounds, 3 recommendations">
          <Hero />
        </figure>
      </div>
      <RecentRuns />
    </div>
  );
}
