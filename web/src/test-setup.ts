import { configure } from "@testing-library/react";

// The default of one second is too short on a machine that also compiles.
configure({ asyncUtilTimeout: 10_000 });
