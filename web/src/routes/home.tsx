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
          <h1>Which company stands trial?</h1>
          <p className="sub">
            Five analysts propose fifteen strategic moves. A critic attacks each one, round after round. You read the three
            that survived, and why.
          </p>
          <TickerForm />
        </div>
        <figure aria-label="Fifteen strands pass ten gates, three come out">
          <Hero />
        </figure>
      </div>
      <RecentRuns />
    </div>
  );
}
